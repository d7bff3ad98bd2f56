"""Matcher, the public class of this room: it matches many filters exactly and fast.

held_filters.py keeps the filters; this module matches single events and batches against them,
explains matches, and saves and opens matchers.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from msgspec.structs import replace

from tidings.filters import Attributes, Explanation, Filter, Misfit, need_mapping
from tidings.filters.canonical import Form
from tidings.filters.language import Types
from tidings.matching import batch_pieces
from tidings.matching.covering.compiled_neighbours import Neighbours
from tidings.matching.diagrams.diagrams import Diagrams
from tidings.matching.diagrams.measured_tests import Measured
from tidings.matching.diagrams.segment_trees import AUTO
from tidings.matching.disk import matcher_folder
from tidings.matching.disk.diagram_folder import SavedDiagrams, pack_measured
from tidings.matching.effort import NOTHING, Effort, count_effort
from tidings.matching.held_filters import Functions, HeldFilters
from tidings.matching.jit.gil import shorten_turns, yield_to_background
from tidings.matching.match_results import Matches, PartIndex, gather_pairs
from tidings.matching.matcher_state import MatcherState, SealedPart, measure_tests, seal_tests
from tidings.matching.placing.box_index import BoxIndex, IndexArrays
from tidings.matching.rank_space.columns import as_batch
from tidings.matching.register import Register
from tidings.matching.segments.assembly import merge_segments
from tidings.matching.segments.misfits import find_misfits, find_readers
from tidings.matching.segments.probe_kernels import Probe
from tidings.matching.segments.segment import Segment
from tidings.matching.segments.segment_builder import build_segment, gather_boxes, segment_of
from tidings.matching.segments.tested_attributes import Tested, list_tested
from tidings.matching.write_buffer import WriteBuffer
from tidings.model import (
    Event,
    LimitError,
    NotificationError,
)

Array = npt.NDArray[Any]
TRIES = 4  # how often a reader tries to read without the lock before it takes the lock
WATCH_EVERY = 16  # one in this many single events is counted for the statistics
CROWD = 64  # if a single event matches more new filters than this, they are sealed early
YIELD_EVERY = 128  # background work gets a turn after this many single events


class Matcher(HeldFilters):
    """Finds every filter that matches an event.

    `attributes` are those that the channel declares; filters are checked against them. `functions`
    maps names to the application's own functions. With `background` (the default), merges run on a
    separate thread; otherwise filters are merged only when `merge()` is called. `engine` is "auto"
    (the default: an index of boxes, and decision diagrams for filters that would need too many
    boxes), "bdd" (diagrams for all filters), "trees" (no diagrams), or "saved" (only the diagrams
    with which the matcher was saved).
    """

    def __init__(
        self,
        attributes: Attributes | None = None,
        *,
        functions: Functions | None = None,
        background: bool = True,
        engine: str = AUTO,
    ) -> None:
        super().__init__(attributes, functions=functions, background=background, engine=engine)
        self._asked = 0
        self._part_index = PartIndex(self._parse, self._make_another)

    def _make_another(self) -> Matcher:
        """A new matcher with the same attributes and functions."""
        return Matcher(self.attributes, functions=self.functions, background=False)

    # -- save and open -------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write all filters to a directory; a snapshot that is already there is replaced."""
        with self._merging:
            self._seal()
            with self._sealing, self._lock:
                state = self._state
                since = [item for fresh in state.fresh for item in fresh.items()]
                columns = state.register.columns
                # the matcher was not changed after it was compiled or opened, and has no statistics
                # of events
                ready = len(state.parts) == 1 and not since and not state.parts[0].statistics.seen
                if columns is None or not ready:
                    slots = dict(state.register.slots)
                    dead = state.register.dead[: state.register.size].copy()
            if columns is not None and ready:
                state.parts[0].save(Path(path), self.engine, *columns)
                return
            segments = [sealed.part.segment for sealed in state.parts]
            merged = merge_segments([*segments, build_segment(since)], dead)
            number = np.zeros(state.register.size, np.uint32)
            number[list(slots.values())] = np.arange(len(slots))
            merged.slots = number[merged.slots]
            texts = [_text(state.register.text(slot)) for slot in slots.values()]
            sealed = seal_tests(merged, state.parts, self.engine)
            sealed.save(Path(path), self.engine, list(slots), texts)

    @classmethod
    def open(
        cls,
        path: str | Path,
        attributes: Attributes | None = None,
        *,
        functions: Functions | None = None,
        background: bool = True,
        engine: str = AUTO,
    ) -> Matcher:
        """Open a saved matcher: check its digests and map it into memory."""
        found = matcher_folder.read(Path(path), attributes, functions)
        matcher = cls(attributes, functions=functions, background=background, engine=engine)
        if found.outdated:
            matcher._compile_again(found)
            return matcher
        saved, probe = found.take(engine)
        measured = None if found.diagrams is None or saved else found.diagrams.read_measured()
        matcher._hold(found.segment, Register(found.ids, found.texts), probe, saved, measured)
        matcher.set_aside = {
            found.texts[slot].as_py(): reason for slot, reason in found.aside.items()
        }
        return matcher

    def _compile_again(self, found: matcher_folder.OpenedMatcher) -> None:
        """Compile the filters of a matcher that an older version saved; they keep their slots."""
        forms: list[tuple[int, Form]] = []
        for slot, text in enumerate(found.texts.to_pylist()):
            try:
                forms.append((slot, self._parse(text).form))
            except LimitError as problem:
                self.set_aside[text] = problem.reason
        segment = segment_of(gather_boxes(forms))
        many = np.zeros(len(found.texts), np.uint8)
        many[: len(segment.many)] = segment.many
        segment = replace(segment, slots=len(many), many=many)
        self._hold(segment, Register(found.ids, found.texts))

    @classmethod
    def from_segment(
        cls,
        segment: Segment,
        filters: Sequence[Filter | str] | pa.ChunkedArray,
        attributes: Attributes | None = None,
        *,
        functions: Functions | None = None,
        background: bool = True,
        engine: str = AUTO,
    ) -> Matcher:
        """A matcher that holds the filters of a segment. The id of a filter is its slot. `filters`
        may be an Arrow column of the texts of filters."""
        matcher = cls(attributes, functions=functions, background=background, engine=engine)
        if isinstance(filters, pa.ChunkedArray):
            ids = pa.chunked_array([np.arange(len(filters), dtype=np.int64)])
            register = Register(ids, filters) if len(filters) else Register()
        else:
            register = Register()
            for slot, filter_ in enumerate(filters):
                register.give(slot, filter_)
        matcher._hold(segment, register)
        return matcher

    def _hold(
        self,
        segment: Segment,
        register: Register,
        ready: Probe | None = None,
        saved: SavedDiagrams | None = None,
        measured: Measured | None = None,
    ) -> None:
        diagrams = None if saved is None else Diagrams(saved.compiled, counts=saved.counts)
        sealed = SealedPart.of(
            segment, self.engine, ready=ready, measured=measured, diagrams=diagrams
        )
        self._state = MatcherState((sealed,), (WriteBuffer(),), register)

    # -- match ---------------------------------------------------------------------------------

    def match(self, event: Event | str | bytes) -> list[Hashable]:
        """The ids of the filters that match one event, which is a mapping or the JSON text of an
        object."""
        if isinstance(event, (str, bytes)):
            found = self._match_text(event)
            if found is not None:
                return found
            event = _decode_event(event, self.attributes)
        need_mapping(event)
        if self.attributes is not None:
            event = self.attributes.read(event)
        for _ in range(TRIES):
            before = self._changes
            if before % 2 == 0:
                ids = self._match_now(event)
                if before == self._changes:
                    return ids
            with self._lock:  # wait for the end of the change in progress, then try again
                pass
        with self._lock:
            return self._match_now(event)

    def _match_text(self, text: str | bytes) -> list[Hashable] | None:
        """The fast path for JSON text; None if the whole text must be decoded."""
        before, state = self._changes, self._state
        plain = len(state.parts) == 1 and len(state.fresh) == 1 and not state.fresh[0]
        plain = plain and state.parts[0].diagrams is None
        if not plain or before % 2 or self.attributes is not None:
            return None
        watch = self._is_watched()
        sealed, register = state.parts[0], state.register
        note = sealed.statistics.count_one if watch else None
        slots = sealed.part.probe_json(text, register.dead, note)
        if slots is None:
            return None
        ids = register.ids_of(slots)
        self._do_upkeep(state, watch)
        return ids if before == self._changes else None

    def _match_now(self, event: Event) -> list[Hashable]:
        fresh: list[int] = []
        state = self._state
        if len(state.fresh) > 1 or state.fresh[-1]:
            with self._lock:  # because of the lock, no filter is missed while it moves into a part
                state = self._state
                fresh = [slot for one in state.fresh for slot in one.match(event)]
            if len(fresh) > CROWD and not self._crowded:
                self._crowded = True
                self._tidy()
        register = state.register
        watch = self._is_watched()
        ids: list[Hashable] = [register.id(slot) for slot in fresh]
        for sealed in state.parts:
            note = sealed.statistics.count_one if watch else None
            ids += register.ids_of(sealed.part.probe(event, register.dead, note))
            if sealed.diagrams is not None:
                ids += register.ids_of(sealed.diagrams.match(event, register.dead))
        self._do_upkeep(state, watch)
        return ids

    def match_parts(self, event: Event | str | bytes) -> dict[Hashable, list[str]]:
        """The ids of the filters that match one event, each with the names of its parts that are
        true: `named('late', delay > 60)` is a part. If the filter has no names, the list is
        empty."""
        if isinstance(event, (str, bytes)):
            event = _decode_event(event, self.attributes)
        need_mapping(event)
        if self.attributes is not None:
            event = self.attributes.read(event)
        with self._lock:  # because otherwise a filter could be replaced before its text is read
            ids = self._match_now(event)
            register = self._state.register
            texts = [register.text(register.slot(id_)) for id_ in ids]
        true_parts = self._part_index.true_parts
        return {id_: true_parts(text, event) for id_, text in zip(ids, texts, strict=True)}

    def match_many(self, events: Any, *, parts: bool = False, threads: int = 1) -> Matches:
        """Match many events in one request: a batch as in `match_batch`, or a list in which an
        event may also be JSON text. The result has the ids by event and the events by filter. With
        `parts`, the result also has the names of the parts that are true."""
        if not isinstance(events, (list, tuple)):
            return self._match_together(events, parts, threads)
        at = 0
        try:
            given = list(events)
            for at, one in enumerate(given):
                if isinstance(one, (str, bytes)):
                    given[at] = _decode_event(one, self.attributes)
            try:
                return self._match_together(given, parts, threads)
            except NotificationError:  # attributes with values of several types, or a bad event
                each = []
                for at, one in enumerate(given):  # noqa: B007 (the message names the event)
                    each.append(self.match_parts(one))
        except NotificationError as problem:
            raise NotificationError(f"event {at}: {problem}") from None
        found = gather_pairs(each)
        return found if parts else replace(found, names=None)

    def _match_together(self, events: Any, parts: bool, threads: int) -> Matches:
        pieces, register = self._match_lists(events, threads)
        count = int(sum(len(starts) - 1 for starts, _ in pieces))
        rows = batch_pieces.rows_of(pieces, threads)
        slots = np.concatenate([np.zeros(0, np.uint32), *(slots for _, slots in pieces)])
        ids, names = register.ids_of(slots), None
        if parts:
            texts = {slot: register.text(slot) for slot in np.unique(slots).tolist()}
            names = self._part_index.names_of_pairs(rows, slots, texts, events)
        return Matches(count, rows, ids, names)

    def iter_matches(self, event: Event) -> Iterator[Hashable]:
        """Yield the id of each filter that matches one event, as soon as the filter is decided.
        First come the filters that indexes find, then those that are evaluated as diagrams, test by
        test. If filters change after the first id was yielded, the result may or may not reflect
        the changes."""
        need_mapping(event)
        event = event if self.attributes is None else self.attributes.read(event)
        with self._lock:
            state = self._state
            dead = state.register.dead.copy()
            fresh = [slot for one in state.fresh for slot in one.match(event)]
        register = state.register
        yield from (register.id(slot) for slot in fresh)
        for sealed in state.parts:
            yield from register.ids_of(sealed.part.probe(event, dead))
        for sealed in state.parts:
            for slot, matches in sealed.decide(event):
                if matches and not dead[slot]:
                    yield register.id(slot)

    def _is_watched(self) -> bool:
        """Should the statistics count this single event?"""
        self._asked += 1
        return self._asked % WATCH_EVERY == 0

    def _do_upkeep(self, state: MatcherState, watched: bool) -> None:
        """Do the occasional work that is due after a single event."""
        if watched:
            state.register.keep_ids()
            self._tidy()
            if self._asked % YIELD_EVERY == 0:
                yield_to_background()

    def match_pairs(self, events: Any, *, threads: int = 1) -> tuple[Array, Array]:
        """The event index and the filter id of every match, as two arrays, in the order of events.

        The array of ids has the type int64 if all ids are 64-bit integers; otherwise it contains
        objects.
        """
        pieces, register = self._match_lists(events, threads)
        ids = batch_pieces.values_of(pieces, register.id_array(), threads)
        return batch_pieces.rows_of(pieces, threads), ids

    def match_rows(
        self, batch: pa.RecordBatch, event_of: Callable[[int], Event]
    ) -> tuple[Array, Array] | None:
        """Like `match_pairs`, but the pairs are in any order, and the write buffer is not sealed,
        which would take milliseconds. The filters in the buffer are matched with single events, but
        only for the rows that one of these filters may match; `event_of` returns the event of a
        row. The batch must have no null marks; the method returns None if a filter needs them."""
        fresh: list[tuple[int, int]] = []
        with self._lock:  # because of the lock, no filter is missed while it moves into a part
            state = self._state
            dead = state.register.dead.copy()
            buffers = [one for one in state.fresh if one]
            if buffers:
                may_match = np.logical_or.reduce([one.find_rows(batch) for one in buffers])
                for row in np.flatnonzero(may_match).tolist():
                    event = event_of(row)
                    fresh += [(row, slot) for one in buffers for slot in one.match(event)]
        if state.null_paths:
            return None
        if len(fresh) > CROWD * batch.num_rows:
            self._crowded = True
        pieces = batch_pieces.match_lists(state, dead, batch, 1)
        ids = state.register.id_array()
        self._tidy()
        rows, slots = batch_pieces.rows_of(pieces, 1), batch_pieces.values_of(pieces, ids, 1)
        if not fresh:
            return rows, slots
        more = np.array(fresh, np.int64)
        return np.concatenate([rows, more[:, 0]]), np.concatenate([slots, ids[more[:, 1]]])

    def match_batch(self, events: Any, *, threads: int = 1) -> Any:
        """A ListArray with the ids that match each event of a batch.

        A batch is an Arrow RecordBatch or Table, anything with the Arrow PyCapsule interface
        (polars, DuckDB), a pandas DataFrame, or a list of mappings. Ids that are strings are
        dictionary-encoded.
        """
        pieces, register = self._match_lists(events, threads)
        starts, ids = batch_pieces.starts_of(pieces), register.id_column()
        large = starts[-1] >= 2**31
        offsets = pa.array(starts if large else starts.astype(np.int32))
        kind = pa.LargeListArray if large else pa.ListArray
        if pa.types.is_integer(ids.type):
            values = pa.array(batch_pieces.values_of(pieces, ids.to_numpy(), threads))
        else:
            slots = [np.zeros(0, np.int32), *(slots.view(np.int32) for _, slots in pieces)]
            values = pa.DictionaryArray.from_arrays(pa.array(np.concatenate(slots)), ids)
        return kind.from_arrays(offsets, values)

    def match_counts(self, events: Any, *, threads: int = 1) -> Array:
        """How many filters match each event, as an int64 array."""
        state, dead = self._seal()
        batch = self._as_batch(events, state)
        found = batch_pieces.match_counts(state, dead, batch, threads)
        self._tidy()
        return found

    def _match_lists(self, events: Any, threads: int) -> tuple[list[batch_pieces.Lists], Register]:
        state, dead = self._seal()
        batch = self._as_batch(events, state)
        pieces = batch_pieces.match_lists(state, dead, batch, threads)
        self._tidy()
        return pieces, state.register

    def _as_batch(self, events: Any, state: MatcherState) -> pa.RecordBatch:
        nulls = state.null_paths if isinstance(events, (list, tuple)) else ()
        return as_batch(events, self.attributes, nulls)

    # -- inspect -------------------------------------------------------------------------------

    def explain(self, id: Hashable, event: Event | str | bytes) -> Explanation:
        """Which tests of a filter passed and which failed."""
        if isinstance(event, (str, bytes)):
            event = _decode_event(event)
        return self.filter(id).explain(event)

    def filter(self, id: Hashable) -> Filter:
        """The filter with this id."""
        register = self._state.register
        return self._parse(register.text(register.slot(id)))

    def neighbours(self, count: int) -> Neighbours:
        """Prepare the first `count` filters for comparisons with new filters. These filters must
        all be in one part, as they are in a matcher that was just compiled or opened, and each
        filter's id must be its slot."""
        return Neighbours(self._state.parts[0].part.segment, count)

    def box_index(self, ready: IndexArrays | None = None) -> BoxIndex:
        """An index that finds the neighbours of new filters among those of this matcher. All
        filters of this matcher must be in one part, as they are in a matcher that was just opened,
        and each filter's id must be its slot."""
        segment = self._state.parts[0].part.segment
        return BoxIndex(segment, segment.slots, ready)

    def prepare(self) -> None:
        """Build the tables for single events now, so that no event has to wait for them."""
        for sealed in self._state.parts:
            sealed.part.prepare()

    def list_tested(self) -> Tested:
        """The attributes that filters read, by path, with the kinds of values that they are
        compared with."""
        state, _ = self._seal()
        return list_tested(sealed.part.segment for sealed in state.parts)

    def misfits(self, types: Types) -> dict[Misfit, list[Hashable]]:
        """The ids of the filters that don't fit columns of these types, grouped by what the filters
        expect."""
        state, dead = self._seal()
        segments = [sealed.part.segment for sealed in state.parts]
        found = find_misfits(segments, types)
        return {
            one: state.register.ids_of(alive)
            for one, slots in found.items()
            if len(alive := slots[dead[slots] == 0])
        }

    def readers(self, path: tuple[str, ...]) -> list[Hashable]:
        """The ids of the filters that read an attribute."""
        state, dead = self._seal()
        slots = find_readers([sealed.part.segment for sealed in state.parts], path)
        return state.register.ids_of(slots[dead[slots] == 0])

    def never(self) -> list[Hashable]:
        """The ids of filters that can never match. `filter(id).note` says why."""
        state, dead = self._seal()
        register = state.register
        empty = dead[: register.size] == 0
        for sealed in state.parts:
            empty[sealed.part.segment.arrays.box_slot] = False
        # A slot without boxes may also belong to a filter that is set aside, or to one that another
        # thread is adding.
        texts = ((slot, register.text(slot)) for slot in np.flatnonzero(empty).tolist())
        return [register.id(slot) for slot, text in texts if self._is_never(text)]

    def _is_never(self, filter_: Filter | str) -> bool:
        return _text(filter_) not in self.set_aside and self._parse(filter_).never

    def pack_measured(self) -> bytes:
        """For each test of the diagrams, how many events were seen and how many passed, as bytes
        for a process that builds the diagrams again. This is slow, so a background thread should
        call it."""
        with shorten_turns():
            return pack_measured(measure_tests(self._state.parts))

    def null_paths(self) -> frozenset[tuple[str, ...]]:
        """The paths of the attributes for which some filter distinguishes null from absent. Code
        that turns JSON into a batch must mark nulls at exactly these paths (see
        model.NULL_MARK)."""
        state, _ = self._seal()
        return state.null_paths

    def computes(self) -> bool:
        """Whether some filter does more than test attributes and topics. Its result may then depend
        on the exact type of a number: as a text, 3 is not 3.0."""
        state, _ = self._seal()
        return any(sealed.part.computes for sealed in state.parts)

    def effort(self, event: Event) -> Effort:
        """Match one event, and count the tests that are evaluated. Slow: for measurements."""
        need_mapping(event)
        event = event if self.attributes is None else self.attributes.read(event)
        state, dead = self._seal()
        return sum((count_effort(one, event, dead) for one in state.parts), NOTHING)

    def stats(self) -> dict[str, int]:
        """The numbers of filters, parts, boxes and terms, and the size of the index."""
        state = self._state
        segments = [sealed.part.segment for sealed in state.parts]
        return {
            "filters": len(self),
            "fresh": state.fresh_count,
            "dead": self._dead_count,
            "parts": len(segments),
            "boxes": sum(len(segment.arrays.box_slot) for segment in segments),
            "terms": sum(len(segment.terms) for segment in segments),
            "residual_boxes": sum(len(segment.rest) for segment in segments),
            "diagrams": sum(sealed.diagram_count for sealed in state.parts),
            "index_bytes": sum(sealed.nbytes for sealed in state.parts),
        }


def _decode_event(text: str | bytes, attributes: Attributes | None = None) -> Event:
    try:
        event = msgspec.json.decode(text) if attributes is None else attributes.decode(text)
    except (msgspec.DecodeError, UnicodeError) as problem:
        raise NotificationError(f"the event is not JSON: {problem}") from None
    except RecursionError:
        raise NotificationError("the JSON of the event is nested too deeply") from None
    if not isinstance(event, dict):
        found = _JSON_NAMES.get(type(event), "a number")
        raise NotificationError(f"found {found} in JSON, expected an object")
    return event


_JSON_NAMES = {list: "an array", str: "a string", bool: "true or false", type(None): "null"}


def _text(filter_: Filter | str) -> str:
    return filter_ if isinstance(filter_, str) else filter_.sql()
