"""What is known about terms on the way down a diagram: for each term, the set of values that it may
have.

A test "term in set" is decided if the set of values that are still possible lies inside the test's
set (the test is true) or outside it (the test is false). Sets of values are exact, and absent and
null count as values, so these two outcomes suffice.
"""

from __future__ import annotations

from collections.abc import Mapping

from tidings.filters.canonical import AllOf, Node, Test
from tidings.filters.values import ValueSet, sets

Known = Mapping[str, ValueSet]
NOTHING_KNOWN: Known = {}


def decide(known: Known, test: Test) -> bool | None:
    """The outcome of a test if it follows from what is known; None if it does not."""
    values = known.get(test.term)
    if values is None:
        return None
    if test.values >= values:
        return True
    return None if values & test.values else False


def assume(known: Known, test: Test, outcome: bool) -> Known:
    """What is known after a test with this outcome."""
    before = known.get(test.term, sets.EVERYTHING)
    return {**known, test.term: before & test.values if outcome else before - test.values}


def implies(known: Known, other: Known) -> bool:
    """Whether `known` implies everything in `other`."""
    return all(term in known and values >= known[term] for term, values in other.items())


def unite(known: Known, other: Known) -> Known:
    """What is known if one of two paths was taken: the hull of what is known on each."""
    both = {term: values | other[term] for term, values in known.items() if term in other}
    return {term: values for term, values in both.items() if not values.is_everything}


def simplify(node: Node, known: Known) -> Node | bool:
    """What remains of a tree of tests, given what is known; True or False if the tree is
    decided."""
    if isinstance(node, Test):
        outcome = decide(known, node)
        return node if outcome is None else outcome
    absorbing = not isinstance(node, AllOf)
    left: list[Node] = []
    for item in node.items:
        found = simplify(item, known)
        if found is absorbing:
            return absorbing
        if not isinstance(found, bool):
            left.append(found)
    if not left:
        return not absorbing
    return left[0] if len(left) == 1 else type(node)(tuple(left))
