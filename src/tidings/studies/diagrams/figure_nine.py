"""Figure 9: two small filters, whose implication edges are known.

    S1   x = 3 AND y > 1 AND y < 4  OR  x = 5
    S2   x = 2 AND y = 3  OR  x > 4 AND y > 2  OR  z > 4

A node is named by the outcomes on the path to it: "S2 01" is reached if the first test of S2 fails
and the next one passes.
"""

from __future__ import annotations

from tidings.filters import parse
from tidings.filters.canonical import AllOf, AnyOf, Node, Test
from tidings.matching.diagrams import Decision, Ranking, build_tree, edges_between

ORDER = ("x = 3", "x = 5", "x = 2", "x > 4", "y > 1", "y < 4", "y = 3", "y > 2", "z > 4")
# the rule of the figure: each edge leads to a node that comes after the node where it starts
DRAWN = {("S1 1", "S2 00"), ("S2 1", "S1 00")}
# by the rule that is used, leaves have edges too: if x = 5, the next test of S2 is y > 2
ADDED = {("S1 01", "S2 01")}
Edges = set[tuple[str, str]]


def find_edges() -> tuple[Edges, Edges]:
    """The edges that the rule of the figure gives, and those that the rule in use gives."""
    one, two = _draw()
    names = {**_names_of(one), **_names_of(two)}

    def is_later(node: Decision, target: Decision) -> bool:
        return target.rank > node.rank

    drawn = edges_between(one, two, is_later) + edges_between(two, one, is_later)
    used = edges_between(one, two) + edges_between(two, one)
    by_rule, by_use = ({(names[id(a)], names[id(b)]) for a, b in some} for some in (drawn, used))
    return by_rule, by_use


def is_figure_exact() -> bool:
    """Whether the edges of figure 9 are found, and no others."""
    drawn, used = find_edges()
    return drawn == DRAWN and used == DRAWN | ADDED


def _draw() -> tuple[Decision, Decision]:
    tests = dict(zip(ORDER, map(_test, ORDER), strict=True))

    def both(*texts: str) -> Node:
        return AllOf(tuple(tests[text] for text in texts))

    ranking = Ranking(tests.values())
    one: Node = AnyOf((both("x = 3", "y > 1", "y < 4"), tests["x = 5"]))
    two: Node = AnyOf((both("x = 2", "y = 3"), both("x > 4", "y > 2"), tests["z > 4"]))
    first, second = build_tree("S1", one, ranking), build_tree("S2", two, ranking)
    assert first is not None, "nine tests are within every budget"
    assert second is not None, "nine tests are within every budget"
    return first, second


def _test(text: str) -> Test:
    ((term, values),) = parse(text).form.hull.items()
    return Test(term, values)


def _names_of(root: Decision) -> dict[int, str]:
    names: dict[int, str] = {}
    stack = [(root, "")]
    while stack:
        node, path = stack.pop()
        names[id(node)] = f"{root.owner} {path}"
        if node.test is not None:
            stack += [(node.branch(True), path + "1"), (node.branch(False), path + "0")]
    return names
