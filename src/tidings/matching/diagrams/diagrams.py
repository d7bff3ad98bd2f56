"""Diagrams in use: they evaluate events from the start, and find their edges later.

The arrays are immutable. New diagrams have no edges; `link` finds the edges and swaps in arrays
with these edges. The results stay the same. `remove` and `renumber` change results, so they return
new Diagrams objects. An event is evaluated on the same arrays from beginning to end.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidings.filters.canonical import Node, Test
from tidings.filters.language import Expression
from tidings.matching.diagrams import diagram_kernels as kernels
from tidings.matching.diagrams.class_edges import find_edges
from tidings.matching.diagrams.diagram_arrays import (
    CompiledDiagrams,
    DiagramArrays,
    compile_plan,
    link_classes,
)
from tidings.matching.diagrams.diagram_work import (
    COUNTED,
    DiagramCounts,
    Totals,
    Version,
    add_counts,
    new_counts,
)
from tidings.matching.diagrams.measured_tests import (
    Measured,
    PassCounts,
    count_tests,
    first_counts,
    name_counts,
    no_counts,
    rates_of,
)
from tidings.matching.diagrams.node_classes import Classes, build_classes
from tidings.matching.diagrams.planning.numbered_conditions import BUDGET
from tidings.matching.diagrams.planning.plan import DiagramPlan, plan_filters
from tidings.matching.diagrams.removal import remove_filters
from tidings.matching.jit import array_pool
from tidings.matching.rank_space import columns
from tidings.matching.rank_space.encoder import Encoder
from tidings.matching.rank_space.event_coder import EventReader, integer_codes, lookup_of
from tidings.model import Event

Array = npt.NDArray[Any]
ROOM = 1 << 18  # the smallest size of an output buffer, in matches
_INDEX = np.dtype(np.intp)


class Draft(msgspec.Struct, frozen=True):
    """The plan and the classes that diagrams were compiled from; they are kept until the edges are
    found."""

    plan: DiagramPlan
    classes: Classes


class Diagrams:
    """The diagrams of many filters, each identified by its slot. Safe to use from several
    threads."""

    def __init__(
        self,
        compiled: CompiledDiagrams,
        draft: Draft | None = None,
        counts: PassCounts | None = None,
    ) -> None:
        self.draft = draft
        self._first = counts or no_counts(len(compiled.arrays.test_column))
        self._totals = Totals(new_counts(compiled.terms))
        self._swapping = threading.Lock()  # only one new version may be made at a time
        found = compiled.terms
        self._encoders = [Encoder(term.ranks) for term in found]
        self._reader = EventReader(
            [lookup_of(at, term.node, term.ranks, False) for at, term in enumerate(found, 1)]
        )
        self._integers = integer_codes(list(self._encoders))
        self._version = self._new_version(compiled)

    @classmethod
    def build(
        cls,
        filters: Iterable[tuple[int, Node]],
        terms: Mapping[str, Expression],
        measured: Measured | None = None,
        *,
        merge: bool = True,
        join: bool = True,
        budget: int = BUDGET,
    ) -> Diagrams:
        """Build the diagrams of filters, given as (slot, tree of tests), without edges. `measured`
        has the counts of earlier diagrams, which decide the order of tests. Filters that would
        exceed a budget are left out. If `merge` is false, equal parts are not merged; if `join` is
        false, nodes with equal knowledge are not joined. Both switches are only for
        measurements."""
        plan = plan_filters(filters, terms, rates_of(measured or {}), merge=merge, budget=budget)
        classes = build_classes(plan, join=join)
        counts = first_counts(plan.tests.tests, measured or {})
        return cls(compile_plan(plan, classes), Draft(plan, classes), counts)

    def _new_version(self, compiled: CompiledDiagrams) -> Version:
        return Version(compiled, len(self._encoders), self._integers, self._totals)

    def _swap_in(self, compiled: CompiledDiagrams) -> None:
        before, self._version = self._version, self._new_version(compiled)
        before.retire()

    @property
    def is_linked(self) -> bool:
        """Whether the edges were searched for."""
        return self.compiled.is_linked

    def link(self) -> None:
        """Find the implication edges, and swap in arrays that have these edges."""
        with self._swapping:
            draft = self.draft
            if draft is not None:
                edges = find_edges(draft.classes, draft.plan.tests)
                self._swap_in(link_classes(self.compiled, draft.classes, edges))
                self.draft = None

    def remove(self, slots: Array) -> Diagrams:
        """The same diagrams without these filters. Code that still uses the old diagrams finds all
        filters in them. Until the edges are found, this returns the same object, because the caller
        must ignore removed filters anyway."""
        if not self.is_linked:
            return self
        new = copy(self)
        new._swap_in(remove_filters(self.compiled, slots))
        return new

    def renumber(self, number: Array) -> Diagrams:
        """The same diagrams, with `number[slot]` in place of each slot."""
        new = copy(self)
        new._swap_in(self.compiled.renumber(number))
        return new

    @property
    def compiled(self) -> CompiledDiagrams:
        return self._version.compiled

    def __len__(self) -> int:
        """The number of filters."""
        return len(self.compiled)

    @property
    def slots(self) -> Array:
        """The slots of all filters."""
        return self.compiled.slots

    @property
    def arrays(self) -> DiagramArrays:
        return self.compiled.arrays

    @property
    def nbytes(self) -> int:
        return self.compiled.nbytes

    # -- match ---------------------------------------------------------------------------------

    def match(self, event: Event, dead: Array) -> Array:
        """For one event, the slots of the filters that match and are not dead."""
        values = self._reader.of_event(event)
        version = self._version
        evaluation = version.take()
        found = np.empty(len(evaluation.work.results), _INDEX)
        count = kernels.match_event(evaluation.table, values, dead, found)
        version.give_back(evaluation)
        always = version.always
        if not len(always):
            return found[:count]
        return np.concatenate([always[dead[always] == 0], found[:count]])

    def decide(self, event: Event) -> Iterator[tuple[int, bool]]:
        """The slot and the result of every filter, each as soon as it is decided."""
        version = self._version
        evaluation = version.take()
        yield from ((one >> 1, bool(one & 1)) for one in version.compiled.decided.tolist())
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
        """The (event, slot) pairs of all matches of a batch, in chunks."""
        codes = np.zeros((len(self._encoders) + 1, batch.num_rows), np.uint32)
        for at, (term, encoder) in enumerate(
            zip(self.compiled.terms, self._encoders, strict=True), 1
        ):
            codes[at] = columns.codes_of(term.node, batch, encoder)
        return self.pairs_of_codes(codes, dead)

    def pairs_of_codes(self, codes: Array, dead: Array) -> list[tuple[Array, Array]]:
        """Like `pairs`, for events that are given as codes: uint32 [C, n], with columns from 1
        on."""
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
        always = version.always[dead[version.always] == 0].astype(np.uint32)
        if len(always):
            every = np.arange(codes.shape[1], dtype=np.uint32)
            found.append((np.repeat(every, len(always)), np.tile(always, codes.shape[1])))
        return found

    # -- statistics ----------------------------------------------------------------------------

    def total_counts(self) -> dict[str, int]:
        """Counts of the work for all events since the diagrams were built or opened."""
        return dict(zip(COUNTED, self._sum_counts().counts.tolist(), strict=True))

    def forget_counts(self) -> None:
        """Set the counts to zero. The counts that were taken over from earlier diagrams are
        kept."""
        for counts in self._version.counts():
            counts.counts[:] = 0
            counts.codes[:] = 0

    def _sum_counts(self) -> DiagramCounts:
        """The sum of all counts, including counts from arrays that have been replaced."""
        found = new_counts(self.compiled.terms)
        for counts in self._version.counts():
            add_counts(found, counts)
        return found

    def test_counts(self) -> PassCounts:
        """For each test, by its number, how many events were seen and how many passed, including
        the counts of earlier diagrams."""
        return count_tests(self.compiled, self._first, self._sum_counts())

    def read_measured(self) -> Measured:
        """For each test, how many events were seen and how many passed, including the counts of
        earlier diagrams."""
        return name_counts(self.compiled, self.test_counts())

    def rates(self) -> dict[Test, float]:
        """The measured rates at which tests pass."""
        return rates_of(self.read_measured())
