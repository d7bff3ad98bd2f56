"""A segment in use: batches of events are joined with the segment, and single events are looked up
in it.

For each access term, the batch join sorts the batch by the codes of the term, puts the other
columns into the same order, and runs over the entries. One kernel does this for all terms, except
for terms whose values are elements of lists, which are done one by one. Only the tables of the
encoders are kept between calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidings.filters.language import evaluate
from tidings.filters.values import Key
from tidings.matching.jit import array_pool
from tidings.matching.jit.pointer_table import pointer_table
from tidings.matching.rank_space import columns, lists
from tidings.matching.rank_space.encoder import Encoder
from tidings.matching.rank_space.event_coder import EventReader, integer_codes, lookup_of
from tidings.matching.segments import join_kernels, residuals
from tidings.matching.segments.join_kernels import Accesses, ListColumns, Pairs, SortedBatch
from tidings.matching.segments.probe import build_probe
from tidings.matching.segments.probe_kernels import TABLE, Probe, probe
from tidings.matching.segments.segment import Segment
from tidings.matching.segments.tested_attributes import computes, null_paths
from tidings.model import Event

Array = npt.NDArray[Any]
Watch = Callable[[Array], None]  # called with the codes of an event
ROOM = 1 << 20  # the smallest size of an output buffer, in pairs
PADDING = 64
# if there are at most this many slots per match, a pass over all slots is faster than sorting the
# matches
DENSE = 256
FEW = 32  # for at most this many matches, Python is faster than NumPy
_INDEX = np.dtype(np.intp)  # NumPy takes indexes of this type without a copy


class Access(msgspec.Struct, frozen=True):
    """The entries of one access term, as a range, and the columns that the boxes of these entries
    test."""

    column: int
    first: int
    last: int
    tested: Array
    groups: Array  # the groups to which these entries belong


class Codes(msgspec.Struct, frozen=True):
    """A batch in rank space: exact codes, coarse codes with padding, and the codes of lists."""

    exact: Array  # uint32 [C, n]
    coarse: Array  # uint16 [C, n + 64]
    lists: ListColumns


class Part:
    """A segment, with the encoders of its terms. Safe to use from several threads at once."""

    def __init__(
        self,
        segment: Segment,
        counts: Mapping[str, Array] | None = None,
        ready: Probe | None = None,
        skipped: Array | None = None,
    ) -> None:
        """`skipped` contains the boxes that are not searched, because the filters of these boxes
        are evaluated as diagrams; `ready` is the index of the other boxes."""
        self.segment = segment
        self._skipped = skipped
        self._searched = segment if skipped is None else without_entries(segment, skipped)
        self._counts = counts
        self._ready = ready
        self.encoders = [Encoder(term.ranks) for term in segment.terms]
        self._columns = [
            (at, term, encoder)
            for at, (term, encoder) in enumerate(zip(segment.terms, self.encoders, strict=True), 1)
        ]
        accesses = list(_accesses(self._searched))
        of_lists = [at for at, term in enumerate(segment.terms, 1) if term.elements]
        self._list_accesses = _stack_accesses(
            [one for one in accesses if one.column in of_lists], self._searched
        )
        self._accesses = _stack_accesses(
            [one for one in accesses if one.column not in of_lists], self._searched
        )
        # True if everything that the kernel finds is a match
        self._sure = not segment.rest.keys() - set([] if skipped is None else skipped.tolist())
        self._several = bool(segment.many.any())  # a filter with two boxes may match twice
        self._has_lists = any(term.elements for term in segment.terms)
        self._no_lists = _stack_lists(np.full(len(segment.terms) + 1, -1, np.int64), [])

    @property
    def is_probed(self) -> bool:
        """Whether this part has already been searched for a single event."""
        return "_probe_tables" in self.__dict__

    def prepare(self) -> None:
        """Build the tables for single events now, so that no event has to wait for them."""
        _ = self._reader, self._probe_tables

    def with_segment(self, segment: Segment) -> Part:
        """The same part, but with a segment that has other slots."""
        ready = self.__dict__.get("index", self._ready)
        return Part(segment, self._counts, ready, self._skipped)

    @cached_property
    def null_paths(self) -> set[tuple[str, ...]]:
        """The attributes for which some filter distinguishes null from absent."""
        return null_paths(self.segment)

    @cached_property
    def computes(self) -> bool:
        """Whether some filter does more than test attributes and topics."""
        return computes(self.segment)

    @property
    def nbytes(self) -> int:
        """The bytes that all arrays take, including those for single events if they are built."""
        ready = self.__dict__.get("index", self._ready)
        return self.segment.arrays.nbytes + (0 if ready is None else ready.nbytes)

    # -- batches -------------------------------------------------------------------------------

    def encode(self, batch: pa.RecordBatch) -> Codes:
        count, width = batch.num_rows, len(self.segment.terms) + 1
        exact = np.zeros((width, count), np.uint32)
        coarse = np.zeros((width, count + PADDING), np.uint16)
        base = np.full(width, -1, np.int64)
        found: list[lists.ListCodes] = []
        names = frozenset(batch.schema.names)
        for at, term, encoder in self._columns:
            if columns.is_absent(term.node, names, encoder) and not term.elements:
                exact[at] = encoder.ranks.absent
                coarse[at, :count] = encoder.ranks.absent >> self.segment.arrays.shift[at]
                continue
            if term.elements:
                base[at] = len(found) * (count + 1)
                column = columns.value_column(term.node, batch)
                found.append(lists.encode_lists(column, encoder))
                continue
            exact[at] = columns.codes_of(term.node, batch, encoder)
            coarse[at, :count] = exact[at] >> self.segment.arrays.shift[at]
        return Codes(exact, coarse, _stack_lists(base, found))

    def pairs(
        self,
        batch: pa.RecordBatch,
        dead: Array,
        watch: Callable[[Codes], None] | None = None,
        counts: Array | None = None,
    ) -> list[tuple[Array, Array]]:
        """Return (event, slot) of every match, in chunks. A filter with several boxes may occur
        more than once.

        `watch` is called with the codes of the batch, to collect statistics. If `counts` (int64 per
        event) is given, those matches of filters with one box that need no evaluation are counted
        there, and not returned.
        """
        if not len(self._searched.arrays.entry_box):
            return []  # all filters are evaluated as diagrams
        counts = _NO_COUNTS if counts is None else counts
        codes = self.encode(batch)
        if watch is not None:
            watch(codes)
        found: list[tuple[Array, Array]] = []
        unsure: list[tuple[Array, Array]] = []
        self._join_all(codes, dead, found, unsure, counts)
        for access in range(len(self._list_accesses.column)):
            self._join_lists(access, codes, dead, found, unsure, counts)
        for box_events, boxes in unsure:
            kept = residuals.passing(self.segment, batch, box_events, boxes)
            found.append((box_events[kept], self.segment.arrays.box_slot[boxes[kept]]))
        return found

    def _join_all(
        self,
        codes: Codes,
        dead: Array,
        found: list[tuple[Array, Array]],
        unsure: list[tuple[Array, Array]],
        counts: Array,
    ) -> None:
        """Join the batch with the entries of all access terms without lists."""
        access = position = 0
        while access < len(self._accesses.column):
            pairs = self._room_for(codes.exact.shape[1])
            access, position, n_out, n_rest = join_kernels.join_all(
                access, position, self._accesses, codes.exact, codes.coarse, self._searched.arrays,
                codes.lists, dead, self.segment.many, pairs, counts,
            )  # fmt: skip
            _keep(pairs, n_out, n_rest, found, unsure)

    def _room_for(self, events: int) -> Pairs:
        """Output buffers for a join. A single entry may match every event, so each buffer has room
        for at least one pair per event."""
        room = max(ROOM, events)
        spare = room if self.segment.rest else events
        return Pairs(
            out_event=array_pool.empty(room, np.uint32),
            out_slot=array_pool.empty(room, np.uint32),
            rest_event=array_pool.empty(spare, np.uint32),
            rest_box=array_pool.empty(spare, np.uint32),
        )

    def _join_lists(
        self,
        access: int,
        codes: Codes,
        dead: Array,
        found: list[tuple[Array, Array]],
        unsure: list[tuple[Array, Array]],
        counts: Array,
    ) -> None:
        """Join the batch with the entries of one access term. The values of this term are the
        elements of lists."""
        all_ = self._list_accesses
        batch = self._sort_elements(int(all_.column[access]), int(all_.size[access]), codes)
        first, end = all_.tested_starts[access : access + 2]
        join_kernels.permute(codes.coarse, all_.tested[first:end], batch.order, batch.columns)
        position, last = all_.first[access], all_.last[access]
        while position < last and len(batch.order):
            pairs = self._room_for(len(batch.order))
            position, n_out, n_rest = join_kernels.join_access(
                access, position, all_, self._searched.arrays, batch, codes.lists, dead,
                self.segment.many, pairs, counts, 0, 0,
            )  # fmt: skip
            _keep(pairs, n_out, n_rest, found, unsure)

    def _sort_elements(self, column: int, size: int, codes: Codes) -> SortedBatch:
        """The events, sorted by the codes of the elements of their lists. An event occurs once for
        each of its elements."""
        base = codes.lists.base[column]
        starts, used = np.zeros(size + 1, np.int64), np.empty(size + 1, np.int64)
        begin = codes.lists.starts[base : base + codes.exact.shape[1] + 1]
        elements = codes.lists.codes[begin[0] : begin[-1]]
        owners = np.repeat(np.arange(len(begin) - 1, dtype=np.uint32), np.diff(begin))
        order = np.empty(len(elements), np.uint32)
        join_kernels.sort_by_code(elements, size, order, starts)
        join_kernels.find_used(starts, size, used)
        permuted = np.empty((codes.coarse.shape[0], len(order) + PADDING), np.uint16)
        return SortedBatch(starts, used, *_BY_CODE, owners[order], permuted, codes.exact)

    # -- one event -----------------------------------------------------------------------------

    @cached_property
    def index(self) -> Probe:
        """The index for single events. The index is built on first use, because batches do not need
        it."""
        return self._ready or build_probe(self._searched, self._counts)

    @cached_property
    def _reader(self) -> EventReader:
        return EventReader(
            [lookup_of(at, term.node, term.ranks, term.elements) for at, term, _ in self._columns]
        )

    @cached_property
    def _probe_tables(self) -> tuple[tuple[Any, ...], Array]:
        """The arguments of the kernel that are the same for all events: arrays, and their pointer
        table."""
        encoders = [None if term.elements else encoder for _, term, encoder in self._columns]
        kept = integer_codes(encoders), self._searched.arrays, self.index
        assert tuple(map(type, kept)) == TABLE
        return kept, pointer_table(*kept)

    def probe(self, event: Event, dead: Array, watch: Watch | None = None) -> Array:
        """The slots of the filters that match one event. `watch` is called with the codes of the
        event."""
        list_codes = self.element_codes(event)
        found = self._run_probe(self._reader.of_event(event), dead, list_codes, watch)
        if not self._sure:
            found = self.segment.arrays.box_slot[self._check_rest(found, event)]
        return _drop_repeats(found) if self._several else found

    def probe_json(
        self, text: str | bytes, dead: Array, watch: Watch | None = None
    ) -> Array | None:
        """The slots of the filters that match one event, which is given as JSON text. None if the
        whole event is needed, or if the text can't be decoded."""
        values = self._reader.of_json(text) if self._sure else None
        if values is None:
            return None
        found = self._run_probe(values, dead, self._no_lists, watch)
        return _drop_repeats(found) if self._several else found

    def _run_probe(
        self, values: Array, dead: Array, list_codes: ListColumns, watch: Watch | None
    ) -> Array:
        """Run the kernel; return the slots that it finds, or the boxes if some of them must still
        be evaluated."""
        _, table = self._probe_tables
        room = 1024
        while True:
            found = np.empty(room, _INDEX)
            count = probe(values, table, dead, *list_codes, self._sure, found)
            if count >= 0:
                break
            room *= 8
            values = values[: len(self._columns) + 1]  # the kernel has replaced integers with codes
        if watch is not None:
            watch(values)
        return found[:count]

    def _check_rest(self, boxes: Array, event: Event) -> Array:
        """Those of the boxes whose remaining conditions are true for the event."""
        values: dict[str, Key] = {}
        rest, segment = self.segment.rest, self.segment
        kept = [
            box not in rest or residuals.passes(segment, rest[box], event, values)
            for box in boxes.tolist()
        ]
        return boxes if all(kept) else boxes[kept]

    def element_codes(self, event: Event) -> ListColumns:
        """The codes of the elements of all lists that filters examine."""
        if not self._has_lists:
            return self._no_lists
        base = self._no_lists.base.copy()
        found: list[lists.ListCodes] = []
        for at, term, encoder in self._columns:
            if term.elements:
                base[at] = 2 * len(found)
                found.append(lists.encode_list(evaluate(term.node, event), encoder))
        return _stack_lists(base, found)


def _drop_repeats(slots: Array) -> Array:
    """Keep each slot only once. Most events match few filters, each through one box; for such an
    event, a single call to NumPy would take longer than all other work."""
    if len(slots) <= FEW and len(set(slots.tolist())) == len(slots):
        return slots
    size = int(slots.max()) + 1
    if size > DENSE * len(slots):
        return np.unique(slots)
    seen = np.zeros(size, np.bool_)
    seen[slots] = True
    return np.flatnonzero(seen).astype(slots.dtype)


def without_entries(segment: Segment, boxes: Array) -> Segment:
    """The segment without the entries of these boxes, so that a search never finds the boxes."""
    arrays = segment.arrays
    skipped = np.zeros(len(arrays.box_slot), bool)
    skipped[boxes] = True
    kept = ~skipped[arrays.entry_box]
    places = np.concatenate([[0], np.cumsum(kept)])
    start, end = places[arrays.group_start], places[arrays.group_end]
    groups = start < end
    return msgspec.structs.replace(
        segment,
        arrays=arrays._replace(
            entry_low=arrays.entry_low[kept],
            entry_high=arrays.entry_high[kept],
            entry_box=arrays.entry_box[kept],
            group_column=arrays.group_column[groups],
            group_start=start[groups],
            group_end=end[groups],
            group_width=arrays.group_width[groups],
        ),
    )


def _accesses(segment: Segment) -> Iterator[Access]:
    arrays = segment.arrays
    for column in np.unique(arrays.group_column):
        groups = np.nonzero(arrays.group_column == column)[0]
        first, last = int(arrays.group_start[groups[0]]), int(arrays.group_end[groups[-1]])
        boxes = np.unique(arrays.entry_box[first:last]).astype(np.int64)
        tests = slice(int(arrays.box_tests[boxes[0]]), int(arrays.box_tests[boxes[-1] + 1]))
        tested = np.unique(arrays.test_column[tests]).astype(np.int64)
        yield Access(int(column), first, last, tested, groups)


def _stack_accesses(given: Sequence[Access], segment: Segment) -> Accesses:
    """The access terms as arrays that a kernel can use."""
    sizes = [len(segment.terms[one.column - 1].ranks) if one.column else 1 for one in given]
    none = np.zeros(0, np.int64)
    tested, groups = [one.tested for one in given], [one.groups for one in given]
    chosen = np.concatenate([none, *groups])
    return Accesses(
        np.array([one.column for one in given], np.int64),
        np.array(sizes, np.int64),
        np.array([one.first for one in given], np.int64),
        np.array([one.last for one in given], np.int64),
        np.cumsum([0, *map(len, tested)], dtype=np.int64),
        np.concatenate([none, *tested]),
        np.cumsum([0, *map(len, groups)], dtype=np.int64),
        segment.arrays.group_end[chosen],
        segment.arrays.group_width[chosen],
    )


def _keep(
    pairs: Pairs,
    n_out: int,
    n_rest: int,
    found: list[tuple[Array, Array]],
    unsure: list[tuple[Array, Array]],
) -> None:
    """Add the pairs that a join wrote into its buffers."""
    found.append((pairs.out_event[:n_out], pairs.out_slot[:n_out]))
    if n_rest:
        unsure.append((pairs.rest_event[:n_rest], pairs.rest_box[:n_rest]))


_BY_CODE = np.empty(0, np.uint64), np.empty(0, np.int64)  # `words`, `ranks` of a SortedBatch
_NO_COUNTS = np.zeros(0, np.int64)
_NO_LISTS = (np.zeros(1, np.int64), np.zeros(1, np.uint32), np.zeros(1, np.uint8))


def _stack_lists(base: Array, found: list[lists.ListCodes]) -> ListColumns:
    """Combine several list columns into one set of arrays."""
    if not found:
        return ListColumns(base, *_NO_LISTS)
    starts, states = [], []
    offset = 0
    for one in found:
        starts.append(one.starts + offset)
        offset += len(one.codes)
        states.append(np.append(one.state, np.uint8(0)))
    return ListColumns(
        base=base,
        starts=np.concatenate(starts),
        codes=np.concatenate([one.codes for one in found]),
        state=np.concatenate(states),
    )
