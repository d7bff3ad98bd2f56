"""Which filters of a segment are evaluated as diagrams, and their trees of tests.

A wide filter is evaluated as a diagram if all its terms have codes and its hull lets many events
through. All other filters are evaluated with the index of boxes, which is faster for them. If the
caller asks for diagrams for all filters, and the boxes of a filter are a product of clauses,
(a OR b) AND (c OR d) AND ..., the boxes are turned back into these clauses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tidings.filters.canonical import AllOf, AnyOf, Node, Test, value_at
from tidings.filters.language import Call, Expression, Literal, text_of
from tidings.filters.values import sets
from tidings.matching.segments.access import shares
from tidings.matching.segments.assembly import DisassembledSegment, disassemble
from tidings.matching.segments.segment import Segment
from tidings.matching.segments.segment_builder import is_indexed

Array = npt.NDArray[Any]
AUTO, BDD, TREES, SAVED = "auto", "bdd", "trees", "saved"
ENGINES = (AUTO, BDD, TREES, SAVED)
RARE = 1 / 512  # wide filters whose hulls let a smaller share of events through stay trees
_OUTCOMES = ((1, sets.NULL), (2, sets.FALSE), (4, sets.TRUE))


class Chosen:
    """Filters with their trees of tests, and the terms of the tests."""

    def __init__(self) -> None:
        self.trees: list[tuple[int, Node]] = []
        self.terms: dict[str, Expression] = {}

    def add(self, slot: int, tree: Node, terms: Mapping[str, Expression]) -> None:
        self.trees.append((slot, tree))
        self.terms.update(terms)


def choose_trees(
    segment: Segment, engine: str = AUTO, counts: Mapping[str, Array] | None = None
) -> Chosen:
    """The filters of a segment that become diagrams. `counts` maps the text of a term to the number
    of events per code."""
    chosen = Chosen()
    if engine in (TREES, SAVED):
        return chosen
    wide = {box for box, rest in segment.rest.items() if rest.form is not None}
    if not wide and engine == AUTO:
        return chosen
    apart = disassemble(segment)
    if engine == AUTO:
        rare = _rare_boxes(apart, counts or {})
        wide = {box for box in wide if box not in rare and _is_plain(segment, box)}
    for box in sorted(wide):
        form = segment.rest[box].form
        assert form is not None
        tree = AnyOf(()) if form.tree is None else form.tree
        chosen.add(int(segment.arrays.box_slot[box]), tree, form.terms)
    if engine == BDD:
        _add_narrow(segment, apart, chosen)
    return chosen


def _rare_boxes(apart: DisassembledSegment, counts: Mapping[str, Array]) -> set[int]:
    """The boxes that contain a test that few events pass."""
    found = shares(apart.tests, apart.terms, counts)
    return set(apart.tests.box[found < RARE].tolist())


def _is_plain(segment: Segment, box: int) -> bool:
    """Whether all terms that a wide filter tests have codes."""
    form = segment.rest[box].form
    return form is not None and all(map(is_indexed, form.terms.values()))


def _add_narrow(segment: Segment, apart: DisassembledSegment, chosen: Chosen) -> None:
    """Add the filters that consist of boxes."""
    boxes: dict[int, list[Test]] = {}
    for box in range(len(apart.slots)):
        rest = segment.rest.get(box)
        if rest is None or rest.form is None:
            boxes[box] = [Test(text, values) for text, values in rest.tests] if rest else []
    terms = dict(segment.opaque)
    terms |= {term.text: term.node for term in apart.terms if not term.elements}
    _read_tests(apart, boxes)
    _read_elements(apart, boxes, terms)
    by_slot: dict[int, list[list[Test]]] = {}
    for box, tests in boxes.items():
        by_slot.setdefault(int(apart.slots[box]), []).append(tests)
    for slot, some in by_slot.items():
        tree = factor(some) or AnyOf(tuple(AllOf(tuple(tests)) for tests in some))
        chosen.add(slot, tree, {test.term: terms[test.term] for one in some for test in one})


def _read_tests(apart: DisassembledSegment, boxes: Mapping[int, list[Test]]) -> None:
    """Add the indexed tests of boxes, with their sets."""
    tests = apart.tests
    wanted = np.zeros(len(apart.slots), bool)
    wanted[list(boxes)] = True
    known: dict[tuple[int, int, int], Test] = {}
    for row in np.flatnonzero(wanted[tests.box]).tolist():
        column, several = int(tests.column[row]), int(tests.several[row])
        term = apart.terms[column - 1]
        key = column, int(tests.low[row]), int(tests.high[row])
        test = known.get(key) if several < 0 else None
        if test is None:
            spans = [key[1:]]
            if several >= 0:
                inside = slice(*tests.set_starts[several : several + 2].tolist())
                spans = list(
                    zip(
                        tests.set_low[inside].tolist(), tests.set_high[inside].tolist(), strict=True
                    )
                )
            test = Test(term.text, term.ranks.values(spans))
            if several < 0:
                known[key] = test
        boxes[int(tests.box[row])].append(test)


def _read_elements(
    apart: DisassembledSegment, boxes: Mapping[int, list[Test]], terms: dict[str, Expression]
) -> None:
    """Add the tests on elements of lists, as tests of `array_contains`."""
    for box, column, _, place, outcomes in apart.elements:
        if box in boxes:
            passing = [part for bit, part in _OUTCOMES if outcomes & bit]
            values = sets.unite(passing or [sets.NOTHING])
            node = Call("array_contains", (apart.terms[column - 1].node, Literal(value_at(place))))
            text = text_of(node)
            terms[text] = node
            boxes[box].append(Test(text, values))


def factor(boxes: Sequence[Sequence[Test]]) -> Node | None:
    """The clauses whose product these boxes are; None if the boxes are not a product.

    In a product, each box has one test from each clause. So two tests belong to the same clause if
    no box has both.
    """
    where: dict[Test, int] = {}
    for at, box in enumerate(boxes):
        for test in box:
            where[test] = where.get(test, 0) | 1 << at
    left = list(where)
    clauses: list[tuple[Test, ...]] = []
    size = 1
    while left:
        clause = [left[0]]
        for test in left[1:]:
            if all(where[test] & where[other] == 0 for other in clause):
                clause.append(test)
        left = [test for test in left if test not in clause]
        clauses.append(tuple(clause))
        size *= len(clause)
    if size != len(boxes) or len(clauses) < 2 or any(len(box) != len(clauses) for box in boxes):
        return None
    if len({frozenset(box) for box in boxes}) != size:
        return None
    return AllOf(tuple(one[0] if len(one) == 1 else AnyOf(one) for one in clauses))
