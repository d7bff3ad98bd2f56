"""The diagram of one filter as Python objects: the reference for the arrays; pictures show it too.

A tree is ordered: on every path, tests come in the order of their ranks. A tree is not reduced, so
each node has exactly one path to it, and `known` says exactly when the node is reached. A tree
leaves out each test whose outcome follows from the path that leads to the test. A filter whose tree
would be too large gets shared nodes: equal parts become one node, to which several paths lead; the
node's `known` is the hull of what is known on these paths.
"""

from __future__ import annotations

from collections.abc import Iterator

from tidings.filters.canonical import Node, Test
from tidings.matching.diagrams.planning.numbered_conditions import BUDGET
from tidings.matching.diagrams.planning.ranking import Ranking, tests_of
from tidings.matching.diagrams.reference.known_sets import (
    NOTHING_KNOWN,
    Known,
    assume,
    simplify,
    unite,
)

LEAF = 1 << 62  # the rank of leaves, which come after all tests


class Decision:
    """A node: a test with two branches, or a leaf with the filter's result."""

    __slots__ = ("high", "known", "low", "owner", "parent", "rank", "shared", "test", "value")

    def __init__(
        self, owner: object, known: Known, parent: Decision | None, test: Test | None, rank: int
    ) -> None:
        self.owner = owner
        self.known = known
        self.parent = parent
        self.test = test
        self.rank = rank
        self.value: bool | None = None
        self.high: Decision | None = None
        self.low: Decision | None = None
        self.shared = False  # whether several paths lead to this node, or to a node above it

    def branch(self, outcome: bool) -> Decision:
        found = self.high if outcome else self.low
        assert found is not None, "a leaf has no branches"
        return found

    def walk(self) -> Iterator[Decision]:
        """This node and all distinct nodes below it, in preorder."""
        seen: set[int] = set()
        stack = [self]
        while stack:
            node = stack.pop()
            if id(node) not in seen:
                seen.add(id(node))
                yield node
                if node.low is not None and node.high is not None:
                    stack += (node.low, node.high)

    def __repr__(self) -> str:
        what = self.value if self.test is None else f"{self.test.term} {self.test.values.cuts}"
        return f"<{self.owner}: {what}>"


class _TooLargeError(Exception):
    pass


def outcomes_of(left: Node, known: Known, test: Test) -> Iterator[tuple[Node | bool, Known]]:
    """For each outcome of the test, first true and then false: the remaining condition, and what is
    known."""
    for outcome in (True, False):
        after = assume(known, test, outcome)
        yield simplify(left, after), after


def build_tree(
    owner: object, tree: Node | bool, ranking: Ranking, budget: int = BUDGET
) -> Decision | None:
    """The tree of a filter; None if it would have more nodes than the budget."""
    count = 0

    def grow(left: Node | bool, known: Known, parent: Decision | None) -> Decision:
        nonlocal count
        if isinstance(left, bool):
            leaf = Decision(owner, known, parent, None, LEAF)
            leaf.value = left
            return leaf
        count += 1
        if count > budget:
            raise _TooLargeError
        test = min(tests_of(left), key=ranking.__getitem__)
        node = Decision(owner, known, parent, test, ranking[test])
        node.high, node.low = (grow(*one, node) for one in outcomes_of(left, known, test))
        return node

    try:
        return grow(simplify(tree, NOTHING_KNOWN) if isinstance(tree, Node) else tree, {}, None)
    except _TooLargeError:
        return None


def build_shared(
    owner: object, tree: Node | bool, ranking: Ranking, budget: int = BUDGET
) -> Decision | None:
    """The diagram of a filter with shared nodes; None if it has more nodes than the budget.

    Two parts share a node if their remaining conditions are the same, and if the same facts are
    known about the terms that these conditions test.
    """
    made: dict[tuple[object, ...], Decision] = {}
    count = 0

    def grow(left: Node | bool, known: Known) -> Decision:
        nonlocal count
        tests = tests_of(left)
        terms = {test.term for test in tests}
        key = left, tuple(sorted((t, v.cuts) for t, v in known.items() if t in terms))
        node = made.get(key)
        if node is not None:
            node.shared = True
            return node
        if isinstance(left, bool):
            node = made[key] = Decision(owner, known, None, None, LEAF)
            node.value = left
            return node
        count += 1
        if count > budget:
            raise _TooLargeError
        test = min(tests, key=ranking.__getitem__)
        node = made[key] = Decision(owner, known, None, test, ranking[test])
        node.high, node.low = (grow(*one) for one in outcomes_of(left, known, test))
        return node

    try:
        root = grow(simplify(tree, NOTHING_KNOWN) if isinstance(tree, Node) else tree, {})
    except _TooLargeError:
        return None
    _find_hulls(root)
    return root


def _find_hulls(root: Decision) -> None:
    """Set `known` of every node to the hull of what is known on all paths to the node. Parents have
    lower ranks than their children, so parents are done first."""
    nodes = sorted(root.walk(), key=lambda node: node.rank)
    hulls: dict[int, Known] = {id(root): NOTHING_KNOWN}
    for node in nodes:
        node.known = hulls[id(node)]
        if node.test is None:
            continue
        for outcome in (True, False):
            child = node.branch(outcome)
            after = assume(node.known, node.test, outcome)
            before = hulls.get(id(child))
            hulls[id(child)] = after if before is None else unite(before, after)
            if child.parent is None and child is not root:
                child.parent = node
            child.shared = child.shared or node.shared
