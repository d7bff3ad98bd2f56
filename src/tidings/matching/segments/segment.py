"""A segment: many filters compiled into flat arrays, immutable.

    term      what is tested; each has a rank space and is one *column* of codes of a batch
    box       a conjunction; its tests lie side by side, the most selective first
    access    one test of each box is taken out: the one that the fewest events pass. Its interval
              is an *entry*; entries lie sorted by (term, width class, low end), so that the events
              of a sorted batch that pass one are a slice, and so that the entries that one event
              passes are slices too
    extras    what no single interval of 16-bit codes can say: sets of several intervals, terms of
              over 65,536 codes, elements of lists; checked on the few that are left
    rest      residuals and wide filters; evaluated on what is left after that

Column 0 is the same for all events: boxes without an indexable test have their entry there.
Honest cost, one box of k indexable tests: 6 (k - 1) bytes of tests, 12 of entry, 9 of box.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping
from typing import Any, TypeGuard

import msgspec
import numpy as np
import numpy.typing as npt

from tidings.filters.canonical import Form, is_opaque
from tidings.filters.language import Call, Expression, Literal, text_of
from tidings.filters.values import ValueSet, sets
from tidings.matching.rank_space.gathering import Rows, TermTests
from tidings.matching.rank_space.ranks import Ranks
from tidings.matching.segments.access import choose_access

EXTRA, REST = 1, 2  # flags of a box
INTERVALS, ELEMENT = 1, 2  # kinds of extra
MOST_TERMS = 30_000  # columns: their numbers, and twice those, fit 16 bits
_OUTCOMES = ((sets.NULL, 1), (sets.FALSE, 2), (sets.TRUE, 4))

Array = npt.NDArray[Any]


class Term(msgspec.Struct, frozen=True):
    """A column: what is evaluated, and its rank space. `elements`: of the elements of a list."""

    text: str
    node: Expression
    ranks: Ranks
    elements: bool = False


class Arrays(msgspec.Struct, frozen=True):
    """Everything the kernels need; dtypes and shapes in kernels.py."""

    entry_low: Array
    entry_high: Array
    entry_box: Array
    group_column: Array
    group_start: Array
    group_end: Array
    group_width: Array
    box_tests: Array
    test_column: Array
    test_low: Array
    test_width: Array
    box_slot: Array
    box_flags: Array
    box_extras: Array
    extra_kind: Array
    extra_column: Array
    extra_a: Array
    extra_b: Array
    set_low: Array
    set_high: Array
    shift: Array  # per column: how far exact codes are shifted to fit 16 bits

    @property
    def nbytes(self) -> int:
        return sum(getattr(self, name).nbytes for name in self.__struct_fields__)


class Rest(msgspec.Struct, frozen=True):
    """What is left to evaluate for a box: tests on opaque terms, or the whole of a wide form."""

    tests: tuple[tuple[str, ValueSet], ...] = ()
    form: Form | None = None


class Segment(msgspec.Struct, frozen=True):
    terms: tuple[Term, ...]  # of columns 1, 2, ...
    arrays: Arrays
    rest: Mapping[int, Rest]  # by box
    opaque: Mapping[str, Expression]  # terms of the rest
    slots: int  # one more than the highest slot
    many: Array  # uint8 per slot: a filter of several boxes, which may repeat


class Tests(msgspec.Struct):
    """All indexable tests of a segment as arrays, before an access test is chosen.

    One row per test: box, column, and the interval of codes. A set of several intervals has the
    hull here and its intervals in set_low / set_high [first, last) of `several`.
    """

    box: Array
    column: Array
    low: Array
    high: Array
    several: Array  # -1, or the number of the interval set
    set_starts: Array
    set_low: Array
    set_high: Array


class Others:
    """Tests that are not in columns of their own: of elements of lists, and what is evaluated."""

    def __init__(self) -> None:
        self.elements: dict[str, tuple[Expression, dict[Any, int]]] = {}
        self.element_tests: list[tuple[int, str, Any, int]] = []  # box, list, key, outcomes
        self.rest: dict[int, Rest] = {}
        self.opaque: dict[str, Expression] = {}

    def add_other(
        self, box: int, term: str, node: Expression, values: ValueSet, left: list[Any]
    ) -> None:
        """Take a test that no column is for; what has to be evaluated goes to `left`."""
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


class Gathering(Others):
    """Forms to rows, in one pass over Python objects; everything after that is arrays."""

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
        """Room for the tests of a new term; None when it is not indexed or is one too many."""
        if not is_indexed(node) or len(self.by_term) >= MOST_TERMS:
            return None
        return self.by_term.setdefault(term, TermTests(node))


def is_indexed(node: Expression) -> bool:
    """Whether a term may have a column of its own."""
    return not is_element(node) and not is_opaque(node)


def is_element(node: Expression) -> TypeGuard[Call]:
    """Whether a term asks for one element of a list."""
    return (
        isinstance(node, Call)
        and node.name == "array_contains"
        and isinstance(node.args[1], Literal)
        and node.args[1].value is not None
        and not isinstance(node.args[1].value, tuple)
    )


def build_segment(forms: Iterable[tuple[int, Form]]) -> Segment:
    """Compile (slot, form) pairs."""
    return segment_of(gathered(forms))


def gathered(forms: Iterable[tuple[int, Form]]) -> Gathering:
    """What a segment is made of. Forms that match nothing are left out, and none is kept."""
    gathering = Gathering()
    for slot, form in forms:
        if not form.never:
            gathering.add(slot, form)
    return gathering


def _tests_of(gathering: Gathering) -> tuple[list[Term], Tests]:
    terms: list[Term] = []
    parts: list[Rows] = []
    several: list[list[tuple[int, int]]] = []
    for text in sorted(gathering.by_term):
        tests = gathering.by_term[text]
        ranks, rows = tests.coded(len(terms) + 1, several)
        terms.append(Term(text, tests.node, ranks))
        parts.append(rows)
    return terms, _joined(parts, several)


def segment_of(gathering: Gathering, start: int = 0) -> Segment:
    """The segment of what was gathered. `start` is added to every slot."""
    terms, tests = _tests_of(gathering)
    slots = np.array(gathering.slot_of_box, dtype=np.uint32) + np.uint32(start)
    return assemble(terms, tests, slots, gathering)


def assemble(terms: list[Term], tests: Tests, slots: Array, others: Others) -> Segment:
    """The segment of tests in columns, and of others. `slots` are those of the boxes."""
    list_columns: dict[str, int] = {}
    for name in sorted(others.elements):
        node, places = others.elements[name]
        cuts = sorted({cut for place in places for cut in sets.points([place]).cuts})
        terms.append(Term(name, node, Ranks(cuts, False), elements=True))
        list_columns[name] = len(terms)
    elements = [
        (box, list_columns[name], terms[list_columns[name] - 1].ranks, place, outcomes)
        for box, name, place, outcomes in others.element_tests
    ]
    arrays, number = choose_access(tests, slots, terms, elements, set(others.rest), {})
    rest = {int(number[box]): one for box, one in others.rest.items()}
    count = int(slots.max()) + 1 if len(slots) else 0
    many = (np.bincount(slots, minlength=count) > 1).astype(np.uint8)
    return Segment(tuple(terms), arrays, rest, others.opaque, count, many)


def _joined(parts: list[Rows], several: list[list[tuple[int, int]]]) -> Tests:
    kinds = (np.uint32, np.uint32, np.uint32, np.uint32, np.int64)
    rows = [
        np.concatenate([part[i] for part in parts]) if parts else np.zeros(0, kind)
        for i, kind in enumerate(kinds)
    ]
    starts = np.zeros(len(several) + 1, np.int64)
    np.cumsum([len(one) for one in several], out=starts[1:])
    flat = np.array([pair for one in several for pair in one], np.uint32).reshape(-1, 2)
    box, column, low, high, which = rows
    return Tests(box, column, low, high, which, starts, flat[:, 0].copy(), flat[:, 1].copy())
