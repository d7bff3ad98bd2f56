"""Diagrams in use: events are encoded, evaluated and decided; edges are found later.

The arrays are immutable. New diagrams have no edges; `link` finds the edges and swaps in arrays
that have them. An event ends on the arrays on which it began.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from msgspec.structs import replace

from tidings.filters.canonical import Node, Test
from tidings.filters.language import Expression
from tidings.matching.diagrams import diagram_kernels as kernels
from tidings.matching.diagrams.class_edges import find_edges
from tidings.matching.diagrams.classes import Classes, build_classes
from tidings.matching.diagrams.decision_tree import BUDGET
from tidings.matching.diagrams.diagram_arrays import (
    COUNTED,
    Counts,
    DiagramArrays,
    freeze,
    new_counts,
    new_work,
)
from tidings.matching.diagrams.plan import Plan, plan_filters
from tidings.matching.diagrams.ranking import Rates
from tidings.matching.jit import array_pool
from tidings.matching.jit.pointer_table import pointer_table
from tidings.matching.rank_space import columns
from tidings.matching.rank_space.encoder import Encoder
from tidings.matching.rank_space.event_coder import (
    IntegerCodes,
    Reader,
    integer_codes,
    lookup_of,
)
from tidings.model import Event

Array = npt.NDArray[Any]
ROOM = 1 << 18  # the least size of an output buffer, in matches
ENOUGH = 64  # a pass rate counts as measured after this many evaluations
_INDEX = np.dtype(np.intp)


class Version:
    """Arrays, with the states of evaluations that are not in use. Threads take one each."""

    def __init__(self, arrays: DiagramArrays, columns: int, integers: IntegerCodes) -> None:
        self.arrays = arrays
        self._columns = columns
        self._integers = integers
        self._idle: list[Evaluation] = []

    def take(self) -> Evaluation:
        try:
            return self._idle.pop()
        except IndexError:
            return Evaluation(self.arrays, self._columns, self._integers)

    def give_back(self, evaluation: Evaluation) -> None:
        self._idle.append(evaluation)

    def evaluations(self) -> list[Evaluation]:
        return list(self._idle)


class Evaluation:
    """The state of one evaluation, and the kernels' table of its arrays."""

    def __init__(self, arrays: DiagramArrays, columns: int, integers: IntegerCodes) -> None:
        self.work = new_work(arrays, columns)
        self.counts = new_counts(len(arrays.test_column))
        self._kept = arrays, self.work, self.counts, integers
        self.table = pointer_table(*self._kept)

    @property
    def results(self) -> Array:
        return self.work.results[: self.work.now[kernels.RESULTS]]


class Diagrams:
    """Many filters, as trees of tests with their slots. Safe to use from several threads."""

    def __init__(
        self,
        filters: Iterable[tuple[int, Node]],
        terms: Mapping[str, Expression],
        rates: Rates | None = None,
        *,
        merge: bool = True,
        budget: int = BUDGET,
    ) -> None:
        """Without `merge`, equal parts and nodes stay apart, and there are no edges: only for
        measurements."""
        self.plan: Plan = plan_filters(filters, terms, rates, merge=merge, budget=budget)
        self.classes: Classes = build_classes(self.plan, merge=merge)
        self.is_linked = not merge
        found = self.plan.tests.terms
        self._encoders = [Encoder(term.ranks) for term in found]
        self._reader = Reader(
            [lookup_of(at, term.node, term.ranks, False) for at, term in enumerate(found, 1)]
        )
        self._integers = integer_codes(list(self._encoders))
        self._always = np.array([slot for slot, value in self.plan.decided if value], _INDEX)
        self._version = self._new_version(freeze(self.plan, self.classes, None))

    def _new_version(self, arrays: DiagramArrays) -> Version:
        return Version(arrays, len(self._encoders), self._integers)

    def link(self) -> None:
        """Find the implication edges, and swap in arrays that have them."""
        if not self.is_linked:
            edges = find_edges(self.classes, self.plan.tests)
            self._version = self._new_version(freeze(self.plan, self.classes, edges))
            self.is_linked = True

    def renumber(self, number: Array) -> Diagrams:
        """The same diagrams, with `number[slot]` for each slot."""
        new = copy(self)
        new.plan = replace(
            self.plan,
            outputs=[(int(number[slot]), thing) for slot, thing in self.plan.outputs],
            decided=[(int(number[slot]), value) for slot, value in self.plan.decided],
        )
        new._always = number[self._always].astype(_INDEX)
        slots = number[self.arrays.outputs].astype(np.uint32)
        new._version = self._new_version(self.arrays._replace(outputs=slots))
        return new

    @property
    def slots(self) -> Array:
        """The slots of all filters."""
        found = [slot for slot, _ in (*self.plan.outputs, *self.plan.decided)]
        return np.array(sorted(found), np.int64)

    @property
    def arrays(self) -> DiagramArrays:
        return self._version.arrays

    @property
    def nbytes(self) -> int:
        return self._version.arrays.nbytes

    # -- match ---------------------------------------------------------------------------------

    def match(self, event: Event, dead: Array) -> Array:
        """The slots of the filters that match one event, without dead ones."""
        values = self._reader.of_event(event)
        version = self._version
        evaluation = version.take()
        found = np.empty(len(evaluation.work.results), _INDEX)
        count = kernels.match_event(evaluation.table, values, dead, found)
        version.give_back(evaluation)
        return self._with_always(found[:count], dead)

    def _with_always(self, found: Array, dead: Array) -> Array:
        if not len(self._always):
            return found
        return np.concatenate([self._always[dead[self._always] == 0], found])

    def decide(self, event: Event) -> Iterator[tuple[int, bool]]:
        """The slot and the result of every filter, each as soon as it is decided."""
        version = self._version
        evaluation = version.take()
        yield from self.plan.decided
        kernels.set_codes(evaluation.table, self._reader.of_event(event))
        kernels.begin(evaluation.table)
        given, is_done = 0, False
        while not is_done:
            is_done = kernels.advance(evaluation.table, True)
            for result in evaluation.results[given:].tolist():
                yield result >> 1, bool(result & 1)
            given = len(evaluation.results)
        version.give_back(evaluation)

    def pairs(self, batch: pa.RecordBatch, dead: Array) -> list[tuple[Array, Array]]:
        """(event, slot) of every match of a batch, in chunks."""
        codes = np.zeros((len(self._encoders) + 1, batch.num_rows), np.uint32)
        for at, (term, encoder) in enumerate(
            zip(self.plan.tests.terms, self._encoders, strict=True), 1
        ):
            codes[at] = columns.codes_of(term.node, batch, encoder)
        return self.pairs_of_codes(codes, dead)

    def pairs_of_codes(self, codes: Array, dead: Array) -> list[tuple[Array, Array]]:
        """The same for codes (uint32, columns from 1 on by events)."""
        found: list[tuple[Array, Array]] = []
        version = self._version
        evaluation = version.take()
        event = 0
        while event < codes.shape[1]:
            room = ROOM + len(evaluation.work.results)
            events, slots = array_pool.empty(room, np.uint32), array_pool.empty(room, np.uint32)
            event, count = kernels.match_events(evaluation.table, codes, event, dead, events, slots)
            found.append((events[:count], slots[:count]))
        version.give_back(evaluation)
        always = self._always[dead[self._always] == 0].astype(np.uint32)
        if len(always):
            every = np.arange(codes.shape[1], dtype=np.uint32)
            found.append((np.repeat(every, len(always)), np.tile(always, codes.shape[1])))
        return found

    # -- statistics ----------------------------------------------------------------------------

    def counted(self) -> dict[str, int]:
        """What was done for all events since the arrays were swapped in."""
        total = sum((one.counts for one in self._counts()), start=np.zeros(len(COUNTED), np.int64))
        return dict(zip(COUNTED, total.tolist(), strict=True))

    def forget_counts(self) -> None:
        for counts in self._counts():
            for array in counts:
                array[:] = 0

    def _counts(self) -> list[Counts]:
        return [one.counts for one in self._version.evaluations()]

    def rates(self) -> dict[Test, float]:
        """The measured pass rates of tests."""
        size = len(self.plan.tests.tests)
        seen, passed = np.zeros(size, np.int64), np.zeros(size, np.int64)
        for counts in self._counts():
            seen += counts.seen
            passed += counts.passed
        return {
            self.plan.tests.tests[at]: float(passed[at] / seen[at])
            for at in np.flatnonzero(seen >= ENOUGH).tolist()
        }
