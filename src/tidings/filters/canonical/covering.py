"""Covering: whether every notification that matches one filter also matches another.

Box A contains box B if each set of A contains the set that B has for the same term. Filter A covers
filter B if each box of B lies in one box of A. Otherwise, the boxes of A are subtracted from each
box of B, within a budget; A covers B if nothing remains. If B restricts an attribute to a few
points, the terms that A computes from this attribute are evaluated at those points: `lower(name) =
'bo'` covers `name = 'BO'`.

A filter whose form is a tree is compared by its parts and its hull. If that does not decide the
question, both trees are walked down together, like decision diagrams: A covers B if there are no
values of the terms that satisfy B but not A.

A yes is always correct. For unions of boxes over independent terms, the search finds every covering
that the budget allows. A covering that is not found only makes headers longer, but a wrong covering
would make notifications reach the wrong subscribers. So in case of doubt the answer is no.
"""

from __future__ import annotations

from collections.abc import Mapping

from tidings.filters.canonical import boxes as algebra
from tidings.filters.canonical.boxes import Box, WorkBudget
from tidings.filters.canonical.form import Form, tree_of
from tidings.filters.canonical.point_images import image
from tidings.filters.canonical.set_tree import AllOf, AnyOf, Node, Test
from tidings.filters.language.expression import Attribute, Expression
from tidings.filters.values.sets import EVERYTHING

Goal = tuple[Node, bool]  # a tree, and the outcome that it must have
EFFORT = 20_000  # the most comparisons of boxes; if more are needed, the answer is no
AMONG_OTHERS = 2_000  # the same limit for each pair of filters if many filters are compared
MOST_BOXED = 20_000  # if many filters are compared: the most pairs of boxes per pair of filters
HEAVY = 512  # if many filters are compared: heavier forms are compared only by hull and boxes


def covers(outer: Form, inner: Form, budget: WorkBudget | None = None) -> bool:
    """Whether `outer` covers `inner`. Many calls can share a `budget`; once it is spent, the answer
    is no."""
    if outer.always or inner.never:
        return True
    if outer.never or inner.always:
        return False
    if budget is None:
        return hull_allows(outer, inner) and _look_into(outer, inner, WorkBudget(EFFORT))
    if not budget.spend(1 + len(outer.hull) // 16) or not hull_allows(outer, inner):
        return False
    if outer.weight > HEAVY or inner.weight > HEAVY:
        boxes = outer.boxes
        return boxes is not None and len(boxes) == 1 and algebra.contains(boxes[0], inner.hull)
    effort = WorkBudget(min(EFFORT, AMONG_OTHERS, budget.left))
    before = effort.left
    answer = _look_into(outer, inner, effort)
    budget.spend(8 * (before - effort.left))  # a step may merge sets, so it counts as 8 steps
    return answer


def covers_among(
    outer: Form, inner: Form, effort: WorkBudget | None = None, *, walk: bool = True
) -> bool:
    """Whether `outer` covers `inner`, with the lower limits that apply if many filters are compared
    in pairs.

    The answer depends only on these two forms, not on the order of calls or on how the other
    filters are partitioned. So a graph that is compiled in one step equals a graph to which the
    filters were added one by one. A covering that follows from the boxes alone is always found,
    here as well as by the kernels (by_boxes.py and compiled_neighbours.py in matching/covering). A
    caller that passes an `effort` of AMONG_OTHERS steps can see afterwards how many steps were
    taken. `walk=False` is only for measurements: trees are then compared without walking down into
    them.
    """
    if outer.always or inner.never:
        return True
    if outer.never or inner.always or not hull_allows(outer, inner):
        return False
    if outer.boxes is not None:
        boxes = (inner.hull,) if inner.boxes is None else inner.boxes
        if len(outer.boxes) * len(boxes) <= MOST_BOXED and all(
            any(algebra.contains(one, box) for one in outer.boxes) for box in boxes
        ):
            return True
    if outer.weight > HEAVY or inner.weight > HEAVY:
        return False
    return _look_into(outer, inner, effort or WorkBudget(AMONG_OTHERS), walk)


def _look_into(outer: Form, inner: Form, effort: WorkBudget, walk: bool = True) -> bool:
    if inner.boxes is not None:
        covered = all(_covers_box(box, outer, effort) for box in inner.boxes)
        return covered or (walk and outer.boxes is None and _is_refuted(inner, outer, effort))
    assert inner.tree is not None
    one_box = outer.boxes[0] if outer.boxes is not None and len(outer.boxes) == 1 else None
    if one_box is not None and algebra.contains(one_box, inner.hull):
        return True  # the boxes decide the question even if the tree is too large to examine
    if _covers_tree(inner.tree, outer, {}, effort):
        return True
    return walk and _is_refuted(inner, outer, effort)


def hull_allows(outer: Form, inner: Form) -> bool:
    """A cheap necessary condition: the hull of `inner` lies in the hull of `outer`.

    Tests on computed terms are ignored: such a test may be true for each box and still not for the
    hull.
    """
    for term, values in outer.hull.items():
        have = inner.hull.get(term)
        if have is None:
            if isinstance(outer.terms[term], Attribute):
                return False
        elif not values >= have and isinstance(outer.terms[term], Attribute):
            return False
    return True


def box_in_box(outer: Box, inner: Box, terms: Mapping[str, Expression], effort: WorkBudget) -> bool:
    """Whether a box lies in another; the terms whose values follow from the points of the inner box
    are evaluated."""
    for term, values in outer.items():
        have = inner.get(term)
        if have is not None and values >= have:
            continue
        computed = image(term, terms[term], inner, effort)
        if computed is None:
            return False
        if have is not None:
            computed = computed & have
        if not values >= computed:
            return False
    return True


def _covers_box(box: Box, outer: Form, effort: WorkBudget) -> bool:
    if outer.tree is not None:
        return _box_in_tree(box, outer.tree, outer.terms, effort)
    assert outer.boxes is not None
    if not effort.spend(len(outer.boxes)):
        return False
    if any(algebra.contains(one, box) for one in outer.boxes):
        return True
    known = _add_images(box, outer.terms, effort)
    if known is None:
        # the points of the box contradict its computed terms, so no notification matches it
        return True
    if known is not box and any(algebra.contains(one, known) for one in outer.boxes):
        return True
    near = [one for one in outer.boxes if algebra.meet(one, known) is not None]
    return len(near) > 1 and algebra.subtract(known, near, effort) == []


def _box_in_tree(box: Box, node: Node, terms: Mapping[str, Expression], effort: WorkBudget) -> bool:
    if isinstance(node, Test):
        return effort.spend(1) and box_in_box({node.term: node.values}, box, terms, effort)
    if isinstance(node, AllOf):
        return all(_box_in_tree(box, item, terms, effort) for item in node.items)
    return any(_box_in_tree(box, item, terms, effort) for item in node.items)


def _covers_tree(node: Node, outer: Form, seen: dict[int, bool], effort: WorkBudget) -> bool:
    """Whether the outer form covers a tree: all parts of an OR, one part of an AND, or the tree's
    hull. An outer form that is an AND covers a tree if each part of the outer form covers it."""
    if id(node) in seen:
        return seen[id(node)]
    answer = _covers_parts(node, outer, seen, effort)
    if not answer and effort.spend(1):
        around = algebra.hull_of_tree(node)
        answer = around is None or _covers_box(around, outer, effort)
    if not answer and isinstance(outer.tree, AllOf):
        answer = all(
            _covers_tree(node, Form(None, part, {}, outer.terms), {}, effort)
            for part in outer.tree.items
        )
    seen[id(node)] = answer
    return answer


def _covers_parts(node: Node, outer: Form, seen: dict[int, bool], effort: WorkBudget) -> bool:
    if effort.left < 0:
        return False
    if isinstance(node, AnyOf):
        return all(_covers_tree(item, outer, seen, effort) for item in node.items)
    if isinstance(node, AllOf):
        unions = (item for item in node.items if isinstance(item, AnyOf))
        return any(_covers_tree(item, outer, seen, effort) for item in unions)
    return False


# -- decisions ---------------------------------------------------------------------------------


def _is_refuted(inner: Form, outer: Form, effort: WorkBudget) -> bool:
    """Whether all values of the terms that satisfy `inner` also satisfy `outer`. Both trees are
    walked down together, like two diagrams, with the set of values that is still possible for each
    term."""
    return _is_impossible([(tree_of(inner), True), (tree_of(outer), False)], {}, effort)


def _is_impossible(wanted: list[Goal], known: Box, effort: WorkBudget) -> bool:
    """Whether it is impossible that all trees have their wanted outcomes; `known` has the possible
    values of terms."""
    known, left = dict(known), list(wanted)
    has_changed = True
    while has_changed:
        stack, left, has_changed = left, [], False
        while stack:
            node, outcome = stack.pop()
            if not effort.spend(1):
                return False
            if isinstance(node, Test):
                have = known.get(node.term, EVERYTHING)
                now = have & node.values if outcome else have - node.values
                if not now:
                    return True
                has_changed = has_changed or now != have
                known[node.term] = now
            elif isinstance(node, AllOf) is outcome:
                stack += [(item, outcome) for item in node.items]
            else:  # at least one of the items has this outcome
                found = [(item, _decide(item, known, effort)) for item in node.items]
                items = tuple(item for item, decided in found if decided is not (not outcome))
                if not items:
                    return True
                if not any(decided is outcome for _, decided in found):
                    one = len(items) == 1
                    (stack if one else left).append(
                        (items[0] if one else type(node)(items), outcome)
                    )
    if not left:
        return False
    # nodes that must be false come first: such a node is a clause of A, so all tests in it must
    # fail
    left.sort(key=lambda one: (one[1], len(one[0].items) if not isinstance(one[0], Test) else 0))
    (node, outcome), *others = left
    assert not isinstance(node, Test)
    return all(_is_impossible([*others, (item, outcome)], known, effort) for item in node.items)


def _decide(node: Node, known: Box, effort: WorkBudget) -> bool | None:
    """The outcome of a tree if it follows from the possible values; otherwise None."""
    effort.spend(1)
    if isinstance(node, Test):
        have = known.get(node.term)
        if have is None:
            return None
        return True if node.values >= have else None if have & node.values else False
    absorbing = not isinstance(node, AllOf)
    found = [_decide(item, known, effort) for item in node.items]
    if absorbing in found:
        return absorbing
    return None if None in found else not absorbing


# -- terms computed from points ----------------------------------------------------------------


def _add_images(box: Box, terms: Mapping[str, Expression], effort: WorkBudget) -> Box | None:
    """Add a test on every term whose values follow from the points of the box; return None if
    nothing can pass one of these tests."""
    out = box
    for text, term in terms.items():
        computed = image(text, term, box, effort)
        if computed is None:
            continue
        have = box.get(text)
        if have is not None:
            computed = computed & have
        if not computed:
            return None
        out = {**out, text: computed}
    return out
