"""The algebra of boxes against enumeration: every notification of a small world is tried.

The sets of these tests end at 0, 1 and 2, and the world has a value in every gap, of every family
that matters and absent, so a statement about all notifications is one about these.
"""

from __future__ import annotations

import functools
import itertools
import random
from typing import Any

import pytest
from tests.repeats import draws

from tidings.filters.canonical import boxes, set_tree as nodes
from tidings.filters.canonical.boxes import Box, Union, WorkBudget
from tidings.filters.canonical.set_tree import AllOf, AnyOf, Node
from tidings.filters.values import sets
from tidings.filters.values.sets import EVERYTHING, ValueSet, key

TERMS = ("a", "b", "c")
WORLD = [key(value) for value in (None, True, -1, 0, 0.5, 1, 1.5, 2, 3, "x")]
EVENTS = list(itertools.product(WORLD, repeat=len(TERMS)))
PLENTY = 1_000_000

Model = frozenset[int]
ALL_EVENTS: Model = frozenset(range(len(EVENTS)))


def random_values(rng: random.Random) -> ValueSet:
    """A set that is neither empty nor everything."""
    end = key(rng.choice((0, 1, 2)))
    leaves = [
        sets.points([end]),
        sets.points([end, key(rng.choice((0, 1, 2)))]),
        sets.below(end, rng.random() < 0.5),
        sets.above(end, rng.random() < 0.5),
        sets.NUMBERS - sets.points([end]),
        sets.NULL,
        sets.NOT_NULL,
        sets.NUMBERS,
    ]
    values = rng.choice(leaves)
    if rng.random() < 0.3:
        values = values | rng.choice(leaves)
    return sets.NOT_NULL if values.is_everything else values


def random_box(rng: random.Random) -> Box:
    terms = rng.sample(TERMS, rng.choice((0, 1, 1, 2, 2, 2, 3)) if rng.random() < 0.9 else 2)
    return {term: random_values(rng) for term in terms}


def random_union(rng: random.Random) -> Union:
    """Some boxes; many are like an earlier one but for one term, so that they merge."""
    union: Union = []
    for _ in range(rng.randint(0, 7)):
        box = random_box(rng)
        if union and rng.random() < 0.6:
            box = {**rng.choice(union), **dict(list(box.items())[:1])}
        union.append(box)
    return union


@functools.cache
def in_set(term: str, values: ValueSet) -> Model:
    """The events whose value of a term is in a set."""
    place = TERMS.index(term)
    members = {value for value in WORLD if value in values}
    return frozenset(at for at, event in enumerate(EVENTS) if event[place] in members)


def in_box(box: Box) -> Model:
    return ALL_EVENTS.intersection(*(in_set(term, values) for term, values in box.items()))


def model(union: Union) -> Model:
    return frozenset().union(*map(in_box, union))


def is_valid(box: Box) -> bool:
    return all(values and not values.is_everything for values in box.values())


def test_meet_is_intersection(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(200):
        left, right = random_box(rng), random_box(rng)
        both = boxes.meet(left, right)
        assert model([both] if both is not None else []) == model([left]) & model([right])
        assert both is None or is_valid(both)


def test_contains_is_inclusion(seed: int) -> None:
    rng = random.Random(seed)
    held = 0
    for _ in draws(300, lambda: held > 30):
        outer, inner = random_box(rng), random_box(rng)
        contained = boxes.contains(outer, inner)
        assert contained == (model([outer]) >= model([inner]))
        held += contained
    assert held > 30


def test_absorb_keeps_the_union_and_no_box_inside_another(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(200):
        union = random_union(rng)
        kept = boxes.absorb(union)
        assert model(kept) == model(union)
        for one, other in itertools.permutations(kept, 2):
            assert not boxes.contains(one, other)


def test_absorb_finds_what_comparing_all_pairs_finds(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(50):
        union = [random_box(rng) for _ in range(40)]
        different = [box for at, box in enumerate(union) if box not in union[:at]]
        alone = [
            box
            for box in different
            if not any(boxes.contains(other, box) for other in different if other is not box)
        ]
        assert sorted(boxes.absorb(union), key=boxes.sort_key) == sorted(alone, key=boxes.sort_key)


def test_simplify_keeps_the_union_and_leaves_nothing_to_do(seed: int) -> None:
    rng = random.Random(seed)
    fewer = 0
    for _ in draws(500, lambda: fewer > 10):
        union = random_union(rng)
        simple = boxes.simplify(union)
        assert model(simple) == model(union)
        assert all(map(is_valid, simple))
        for one, other in itertools.permutations(simple, 2):
            assert not boxes.contains(one, other)
            assert not differ_in_one(one, other)
        assert boxes.simplify(simple) == simple
        fewer += len(simple) < len(boxes.absorb(union))
    assert fewer > 10


def differ_in_one(one: Box, other: Box) -> bool:
    terms = {*one, *other}
    free = [t for t in terms if one.get(t, EVERYTHING) != other.get(t, EVERYTHING)]
    return len(free) <= 1


def test_simplify_takes_boxes_in_any_order(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(300):
        union = random_union(rng)
        shuffled = [dict(rng.sample(list(box.items()), len(box))) for box in union]
        shuffled += rng.sample(shuffled, min(2, len(shuffled)))
        rng.shuffle(shuffled)
        assert boxes.simplify(shuffled) == boxes.simplify(union)


def test_simplify_writes_merged_sets_as_it_is_told() -> None:
    halves: Union = [{"a": sets.below(key(1), True)}, {"a": sets.above(key(1), False)}]

    def settled(_term: str, values: ValueSet) -> ValueSet:
        return EVERYTHING if values == sets.NUMBERS else values

    assert boxes.simplify(halves) == [{"a": sets.NUMBERS}]
    assert boxes.simplify(halves, settled) == [{}]


@pytest.mark.parametrize(
    ("union", "simple"),
    [
        ([], []),
        ([{}], [{}]),
        ([{"a": sets.NULL}, {}], [{}]),
        ([{"a": sets.NULL}, {"a": sets.NOT_NULL}], [{}]),
        (
            [{"a": sets.NULL, "b": sets.NULL}, {"a": sets.NOT_NULL, "b": sets.NULL}],
            [{"b": sets.NULL}],
        ),
        # two steps: on a, then on b
        (
            [
                {"a": sets.NULL, "b": sets.NULL},
                {"a": sets.NOT_NULL, "b": sets.NULL},
                {"b": sets.NOT_NULL},
            ],
            [{}],
        ),
    ],
)
def test_simplify_of_few(union: Union, simple: Union) -> None:
    assert boxes.simplify(union) == simple


def test_simplify_drops_what_it_made_itself() -> None:
    """In one pass two boxes merge on a, two on b, and the first result lies in the second."""

    def box(a: tuple[int, int], b: tuple[int, int]) -> Box:
        return {
            term: sets.above(key(low), True) & sets.below(key(high), False)
            for term, (low, high) in (("a", a), ("b", b))
        }

    small = [box((0, 1), (1, 3)), box((1, 2), (1, 3))]
    large = [box((0, 3), (0, 2)), box((0, 3), (2, 4))]
    other: Box = {"c": sets.NULL}
    assert boxes.simplify([*small, *large, other]) == [box((0, 3), (0, 4)), other]


def test_subtract_leaves_disjoint_pieces_of_what_is_outside(seed: int) -> None:
    rng = random.Random(seed)
    empty = 0
    for _ in draws(200, lambda: empty > 10):
        box, union = random_box(rng), random_union(rng)
        pieces = boxes.subtract(box, union, WorkBudget(PLENTY))
        assert pieces is not None
        assert model(pieces) == model([box]) - model(union)
        assert all(map(is_valid, pieces))
        assert sum(len(model([piece])) for piece in pieces) == len(model(pieces))
        empty += not pieces
    assert empty > 10


def test_subtract_gives_up_when_its_effort_is_spent() -> None:
    holes: Union = [{"a": sets.points([key(n)]), "b": sets.points([key(n)])} for n in range(50)]
    assert boxes.subtract({}, holes, WorkBudget(100)) is None
    assert boxes.subtract({}, holes, WorkBudget(PLENTY))


def test_hull_is_the_smallest_box_around(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(200):
        union = random_union(rng)
        if not union:
            assert boxes.hull(union) == {}
            continue
        around = boxes.hull(union)
        assert model([around]) >= model(union)
        for term in TERMS:
            place = TERMS.index(term)
            reached = {EVENTS[at][place] for at in model(union)}
            assert {v for v in WORLD if v in around.get(term, EVERYTHING)} == reached


# -- trees -------------------------------------------------------------------------------------


def random_tree(rng: random.Random, depth: int) -> Node:
    if depth == 0 or rng.random() < 0.2:
        return nodes.Test(rng.choice(TERMS), random_values(rng))
    items = tuple(random_tree(rng, depth - 1) for _ in range(rng.randint(2, 3)))
    return AllOf(one_test_per_term(items)) if rng.random() < 0.5 else AnyOf(items)


def one_test_per_term(items: tuple[Node, ...]) -> tuple[Node, ...]:
    """As in the trees that grow: an All has at most one test of a term, the rest are unions."""
    seen: set[str] = set()
    out: list[Node] = []
    for item in items:
        if isinstance(item, nodes.Test):
            if item.term in seen:
                continue
            seen.add(item.term)
        out.append(item)
    return tuple(out)


def shuffled_tree(rng: random.Random, node: Node) -> Node:
    if isinstance(node, nodes.Test):
        return node
    items = [shuffled_tree(rng, item) for item in node.items]
    rng.shuffle(items)
    return type(node)(tuple(items))


def in_tree(node: Node) -> Model:
    if isinstance(node, nodes.Test):
        return in_set(node.term, node.values)
    if isinstance(node, AllOf):
        return ALL_EVENTS.intersection(*map(in_tree, node.items))
    return frozenset().union(*map(in_tree, node.items))


def test_expand_keeps_the_meaning_in_any_order(seed: int) -> None:
    rng = random.Random(seed)
    given_up = 0
    for _ in draws(150, lambda: given_up > 5):
        tree = random_tree(rng, rng.randint(0, 3))
        most = rng.choice((3, 64))
        union = boxes.expand(tree, most)
        same = boxes.expand(shuffled_tree(rng, tree), most)
        assert (union is None) == (same is None)
        if union is None or same is None:
            given_up += 1
            continue
        assert len(union) <= most
        assert model(union) == in_tree(tree)
        assert boxes.simplify(union) == boxes.simplify(same)
        around = boxes.hull_of_tree(tree)
        assert model([around] if around is not None else []) >= model(union)
    assert given_up > 5


def test_expand_gives_up_instead_of_multiplying() -> None:
    def pair(n: int) -> Node:
        return AnyOf((nodes.Test(f"a{n}", sets.NULL), nodes.Test(f"b{n}", sets.NULL)))

    def numbered(n: int, count: int) -> Node:
        return AnyOf(tuple(nodes.Test(f"{n} {m}", sets.NULL) for m in range(count)))

    six: Any = boxes.expand(AllOf(tuple(map(pair, range(6)))), 64)
    assert len(six) == 64
    assert boxes.expand(AllOf(tuple(map(pair, range(7)))), 64) is None
    assert boxes.expand(AllOf(tuple(map(pair, range(1_000)))), 512) is None
    assert boxes.expand(AllOf((numbered(0, 1_000), numbered(1, 1_000))), 512) is None
