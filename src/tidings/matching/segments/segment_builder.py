"""Build a segment from filters. One pass over Python objects gathers the forms of filters as tests
of boxes; everything after that works on arrays."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import Any, TypeGuard

import numpy as np
import numpy.typing as npt

from tidings.filters.canonical import Form, is_opaque
from tidings.filters.language import Call, Expression, Literal, text_of
from tidings.filters.values import ValueSet, sets
from tidings.matching.array_fields import fields_of
from tidings.matching.rank_space.gathering import TermTests, TestRows
from tidings.matching.rank_space.ranks import Ranks
from tidings.matching.segments import segment
from tidings.matching.segments.assembly import DisassembledSegment, assemble
from tidings.matching.segments.segment import Rest, Segment, TermColumn, Tests

Array = npt.NDArray[Any]
_OUTCOMES = ((sets.NULL, 1), (sets.FALSE, 2), (sets.TRUE, 4))


class UnindexedTests:
    """Tests that have no column: those on elements of lists, and those that must be evaluated."""

    def __init__(self) -> None:
        self.elements: dict[str, tuple[Expression, dict[Any, int]]] = {}
        self.element_tests: list[tuple[int, str, Any, int]] = []  # box, list, key, outcomes
        self.rest: dict[int, Rest] = {}
        self.opaque: dict[str, Expression] = {}

    def add_other(
        self, box: int, term: str, node: Expression, values: ValueSet, left: list[Any]
    ) -> None:
        """Add a test on a term that has no column. If the test must be evaluated, append it to
        `left`."""
        if is_element(node):
            self._add_element(box, node, values)
        else:
            left.append((term, values))
            self.opaque[term] = node

    def _add_element(self, box: int, node: Call, values: ValueSet) -> None:
        values = values & (sets.NULL | sets.BOOLEANS)
        outcomes = sum(bit for part, bit in _OUTCOMES if values >= part)
        wanted = node.args[1]
        assert isinstance(wanted, Literal)
        name = text_of(node.args[0])
        place = sets.key(wanted.value)
        self.elements.setdefault(name, (node.args[0], {}))[1][place] = 0
        self.element_tests.append((box, name, place, outcomes))


class BoxGathering(UnindexedTests):
    """Collects forms, as rows of tests."""

    def __init__(self) -> None:
        super().__init__()
        self.slot_of_box = array("I")
        self.by_term: dict[str, TermTests] = {}

    def add(self, slot: int, form: Form) -> None:
        by_term = self.by_term
        boxes = form.boxes if form.boxes is not None else (form.hull,)
        for box in boxes:
            number = len(self.slot_of_box)
            self.slot_of_box.append(slot)
            left: list[tuple[str, ValueSet]] = []
            for term, values in box.items():
                tests = by_term.get(term) or self._tests_of(term, form.terms[term])
                if tests is not None:
                    tests.add(number, values)
                else:
                    self.add_other(number, term, form.terms[term], values, left)
            if form.boxes is None:
                self.rest[number] = Rest(form=form)
            elif left:
                self.rest[number] = Rest(tests=tuple(left))

    def _tests_of(self, term: str, node: Expression) -> TermTests | None:
        """The object that collects the tests of a term, which may be new; None if the term is not
        indexed, or if no column is free."""
        if not is_indexed(node) or len(self.by_term) >= segment.MOST_TERMS:
            return None
        return self.by_term.setdefault(term, TermTests(node))


def is_indexed(node: Expression) -> bool:
    """Whether a term may have its own column."""
    return not is_element(node) and not is_opaque(node)


def is_element(node: Expression) -> TypeGuard[Call]:
    """Whether a term tests if a list contains one particular value."""
    return (
        isinstance(node, Call)
        and node.name == "array_contains"
        and isinstance(node.args[1], Literal)
        and node.args[1].value is not None
        and not isinstance(node.args[1].value, tuple)
    )


def build_segment(forms: Iterable[tuple[int, Form]]) -> Segment:
    """Compile pairs of a slot and a form into a segment."""
    return segment_of(gather_boxes(forms))


def gather_boxes(forms: Iterable[tuple[int, Form]]) -> BoxGathering:
    """Gather the boxes of forms. Forms that match nothing are skipped, and no form is kept."""
    gathering = BoxGathering()
    for slot, form in forms:
        if not form.never:
            gathering.add(slot, form)
    return gathering


def _tests_of(gathering: BoxGathering) -> tuple[list[TermColumn], Tests]:
    terms: list[TermColumn] = []
    parts: list[TestRows] = []
    several: list[list[tuple[int, int]]] = []
    for text in sorted(gathering.by_term):
        tests = gathering.by_term[text]
        ranks, rows = tests.to_codes(len(terms) + 1, several)
        terms.append(TermColumn(text, tests.node, ranks))
        parts.append(rows)
    return terms, _concatenate_rows(parts, several)


def segment_of(gathering: BoxGathering, start: int = 0) -> Segment:
    """Build the segment from the boxes that were gathered. `start` is added to every slot."""
    terms, tests = _tests_of(gathering)
    slots = np.array(gathering.slot_of_box, dtype=np.uint32) + np.uint32(start)
    return segment_of_tests(terms, tests, slots, gathering)


def segment_of_tests(
    terms: list[TermColumn], tests: Tests, slots: Array, others: UnindexedTests
) -> Segment:
    """Build a segment from the tests that are indexed and from those that are not. `slots` contains
    the slot of each box."""
    list_columns: dict[str, int] = {}
    for name in sorted(others.elements):
        node, places = others.elements[name]
        cuts = sorted({cut for place in places for cut in sets.points([place]).cuts})
        terms.append(TermColumn(name, node, Ranks(cuts, False), elements=True))
        list_columns[name] = len(terms)
    elements = [
        (box, list_columns[name], terms[list_columns[name] - 1].ranks, place, outcomes)
        for box, name, place, outcomes in others.element_tests
    ]
    return assemble(DisassembledSegment(terms, tests, slots, elements, others.rest, others.opaque))


def _concatenate_rows(parts: list[TestRows], several: list[list[tuple[int, int]]]) -> Tests:
    rows = {
        name: np.concatenate([np.zeros(0, field.dtype), *(getattr(part, name) for part in parts)])
        for name, field in fields_of(TestRows).items()
    }
    starts = np.zeros(len(several) + 1, np.int64)
    np.cumsum([len(one) for one in several], out=starts[1:])
    flat = np.array([pair for one in several for pair in one], np.uint32).reshape(-1, 2)
    return Tests(**rows, set_starts=starts, set_low=flat[:, 0].copy(), set_high=flat[:, 1].copy())
