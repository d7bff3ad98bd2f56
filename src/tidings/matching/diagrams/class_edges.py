"""Implication edges between classes: from a class to the groups whose outcomes the class implies.

What is known in a class can decide only later tests of the term that was tested last, because by
then every filter is past the tests of all earlier terms. So pairs of filters are never compared: an
index of groups, by the term of their test and by the terms that their class knows, gives the
candidates. An edge is left out if other edges imply it by transitivity. Budgets limit the edges of
a class, and the search for them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from itertools import islice

from tidings.matching.diagrams.node_classes import NONE, Classes, Knowledge
from tidings.matching.diagrams.planning.numbered_tests import OrderedTests

MOST_EDGES = 8  # the most edges of a class
MOST_CANDIDATES = 256  # the most groups that are examined for one class
MOST_LISTS = 1_024  # the most lists of groups that are examined for one class
Edges = list[list[tuple[int, bool]]]
_Index = dict[int, dict[tuple[int, ...], list[tuple[int, int]]]]


def find_edges(found: Classes, tests: OrderedTests, most: int = MOST_EDGES) -> Edges:
    """The edges of each class, in the order of tests."""
    index = _index_groups(found, tests)
    edges = [_edges_of(number, found, tests, index, most) for number in range(len(found.classes))]
    return _reduce(edges, found)


def _index_groups(found: Classes, tests: OrderedTests) -> _Index:
    """Lists of (test, group) pairs in the order of tests. The key is the term of the group's test,
    then the other terms that the group's class knows."""
    index: _Index = {}
    for number, group in enumerate(found.groups):
        owner = found.classes[group.owner]
        if owner.exact:
            term = tests.term_of[group.test]
            others = tuple(other for other, _ in owner.known if other != term)
            index.setdefault(term, {}).setdefault(others, []).append((group.test, number))
    for by_terms in index.values():
        for some in by_terms.values():
            some.sort()
    return index


def _edges_of(
    number: int, found: Classes, tests: OrderedTests, index: _Index, most: int
) -> list[tuple[int, bool]]:
    owner = found.classes[number]
    if owner.test == NONE:
        return []
    term = tests.term_of[owner.test]
    known = dict(owner.known)
    have = known.get(term)
    if have is None:
        return []
    edges: list[tuple[int, bool]] = []
    for test, group in _candidates(term, owner.test, known, index):
        mask = tests.masks[test]
        inside = have & mask
        if inside not in (0, have):
            continue
        target = found.groups[group]
        reached = target.high if inside else target.low
        if number in (target.owner, reached):
            continue
        if _implies(known, found.classes[target.owner].known):
            edges.append((group, inside == have))
            if len(edges) == most:
                break
    return sorted(edges, key=lambda edge: found.groups[edge[0]].test)


def _candidates(
    term: int, test: int, known: Mapping[int, int], index: _Index
) -> Iterator[tuple[int, int]]:
    """Groups that have later tests of a term, and whose classes know only about terms in
    `known`."""
    looked = 0
    for others, groups in islice(index.get(term, {}).items(), MOST_LISTS):
        if all(other in known for other in others):
            for candidate in groups[bisect_left(groups, (test + 1, 0)) :]:
                yield candidate
                looked += 1
                if looked == MOST_CANDIDATES:
                    return


def _implies(known: Mapping[int, int], other: Knowledge) -> bool:
    return all(term in known and known[term] & ~mask == 0 for term, mask in other)


def _reduce(edges: Edges, found: Classes) -> Edges:
    """Leave out A -> C if A -> B and B -> C exist."""
    out: Edges = []
    for own in edges:
        further: set[tuple[int, bool]] = set()
        for group, outcome in own:
            target = found.groups[group]
            further.update(edges[target.high if outcome else target.low])
        out.append([edge for edge in own if edge not in further])
    return out
