"""Matcher: many filters, exactly and fast. The public class of this room.

Filters live in *parts*, large immutable segments, and in a small *fresh* part that takes what was
added last; what was removed is marked dead until a merge drops it.

    add ----> fresh (a dict index, searched at once)
                |  sealed: when a batch comes, or when there are many
                v
    parts:  [ large ] [ small ] [ small ]   --merge, in the background-->   [ large ]
              every part has its own rank space; a match asks all of them

Readers take the state as it is and never wait for a merge: a merge builds a new state beside it and
swaps that in.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidings.filters import Attributes, Explanation, Filter, need_mapping, parse
from tidings.filters.form import Form
from tidings.filters.index import HullIndex
from tidings.filters.sets import Key
from tidings.matching import kernels, snapshot
from tidings.matching.columns import as_batch, conformed
from tidings.matching.courtesy import giving_way
from tidings.matching.merging import Loose, merged, put_together
from tidings.matching.part import Part
from tidings.matching.ranks import Ranks
from tidings.matching.register import Register
from tidings.matching.segment import Segment, build_segment, gathered, segment_of
from tidings.matching.statistics import DRIFT, Statistics, excess, moved
from tidings.model import Event, NotificationError, TidingsError

Array = npt.NDArray[Any]
Functions = Mapping[str, Callable[..., Any]]
BATCH = 65536
SEAL_AT = 1024  # fresh filters that are made a part of their own in the background
MOST_PARTS = 4


class _Sealed(msgspec.Struct, frozen=True):
    """A part with what was seen of events through it."""

    part: Part
    statistics: Statistics


class _State(msgspec.Struct, frozen=True):
    """What a reader needs, all of one moment."""

    parts: tuple[_Sealed, ...]
    register: Register


class Matcher:
    """Finds every filter that matches an event.

    `attributes`: those that a channel declares; filters are then checked against them.
    `functions`: the application's own, by name. `background`: merge on a thread of its own (the
    default) or only when `merge()` is called.
    """

    def __init__(
        self,
        attributes: Attributes | None = None,
        *,
        functions: Functions | None = None,
        background: bool = True,
    ) -> None:
        self.attributes = attributes
        self.functions = functions
        self._background = background
        self._lock = threading.RLock()
        self._merging = threading.Lock()
        self._state = _State((), Register())
        self._fresh: dict[int, Form] = {}
        self._index: HullIndex[int] = HullIndex()
        self._dead_count = 0
        self._replaced = 0
        self._worker: threading.Thread | None = None

    # -- changes -------------------------------------------------------------------------------

    def add(self, id: Hashable, filter: Filter | str) -> None:
        """Add a filter under an id; the next match sees it."""
        form = self._parsed(filter).form
        with self._lock:
            self._refuse_known(id)
            self._put(id, filter, form)
        self._tidy()

    def add_many(self, pairs: Iterable[tuple[Hashable, Filter | str]]) -> int:
        """Add (id, filter) pairs in bulk; when one of them is refused, none is added."""
        taken: dict[Hashable, Filter | str] = {}
        forms = self._forms(pairs, taken)
        few = list(itertools.islice(forms, SEAL_AT))
        many = gathered(enumerate(itertools.chain(few, forms))) if len(few) == SEAL_AT else None
        with self._lock:
            for id_ in taken:
                self._refuse_known(id_)
            if many is None:
                for (id_, filter_), form in zip(taken.items(), few, strict=True):
                    self._put(id_, filter_, form)
            else:
                register = self._state.register
                segment = segment_of(many, start=register.size)
                for id_, filter_ in taken.items():
                    register.give(id_, filter_)
                self._append(segment)
        self._tidy()
        return len(taken)

    def _forms(
        self, pairs: Iterable[tuple[Hashable, Filter | str]], taken: dict[Hashable, Filter | str]
    ) -> Iterator[Form]:
        """The form of each filter, one at a time so that they need not be held; into `taken` goes
        what was read."""
        for id_, filter_ in pairs:
            if id_ in taken:
                raise TidingsError(f"the id {id_!r} is there twice")
            form = self._parsed(filter_).form
            taken[id_] = filter_
            yield form

    def remove(self, id: Hashable) -> None:
        """Remove the filter of an id; the next match does not see it."""
        with self._lock:
            register = self._state.register
            self._kill(register.slot(id))
            del register.slots[id]
        self._tidy()

    def replace(self, id: Hashable, filter: Filter | str) -> None:
        """Give an id another filter, in one step."""
        form = self._parsed(filter).form
        with self._lock:
            old = self._state.register.slot(id)
            self._replaced += 1  # odd: a reader that sees this looks again
            self._put(id, filter, form)
            self._kill(old)
            self._replaced += 1
        self._tidy()

    def __len__(self) -> int:
        return len(self._state.register.slots)

    def __contains__(self, id: object) -> bool:
        return id in self._state.register.slots

    def _parsed(self, filter_: Filter | str) -> Filter:
        if isinstance(filter_, Filter):
            return filter_
        return parse(filter_, attributes=self.attributes, functions=self.functions)

    def _refuse_known(self, id_: Hashable) -> None:
        if id_ in self._state.register.slots:
            raise TidingsError(f"the id {id_!r} has a filter already; replace() changes it")

    def _put(self, id_: Hashable, filter_: Filter | str, form: Form) -> None:
        slot = self._state.register.give(id_, filter_)
        self._fresh[slot] = form
        self._index.add(slot, form)

    def _kill(self, slot: int) -> None:
        self._state.register.kill(slot)
        self._dead_count += 1
        form = self._fresh.pop(slot, None)
        if form is not None:
            self._index.discard(slot, form)

    # -- parts ---------------------------------------------------------------------------------

    def _append(self, segment: Segment) -> None:
        part = Part(segment)
        sealed = _Sealed(part, Statistics(part))
        self._state = _State((*self._state.parts, sealed), self._state.register)

    def _seal(self) -> None:
        """Make a part of the fresh filters, so that batches can be joined with them."""
        with self._lock:
            if self._fresh:
                self._append(build_segment(self._fresh.items()))
                self._fresh = {}
                self._index = HullIndex()

    def _tidy(self) -> None:
        """Start a merge when there is enough to merge."""
        if not self._background or not self._needs_merge():
            return
        with self._lock:
            if self._worker is None or not self._worker.is_alive():
                self._worker = threading.Thread(target=self.merge, daemon=True)
                self._worker.start()

    def _needs_merge(self) -> bool:
        state = self._state
        return (
            len(self._fresh) >= SEAL_AT
            or len(state.parts) > MOST_PARTS
            or self._wasteful(state.register)
            or any(sealed.statistics.due() for sealed in state.parts)
        )

    @staticmethod
    def _wasteful(register: Register) -> bool:
        """Whether more than a quarter of the slots are of filters that are gone."""
        return register.gone > max(SEAL_AT, register.size // 4)

    def merge(self) -> None:
        """Make one part of all, without what was removed. Matching goes on meanwhile."""
        with self._merging, giving_way():
            self._seal()
            with self._lock:
                before = self._state
                dead = before.register.dead[: before.register.size].copy()
                count = self._dead_count
            parts = before.parts
            if not parts or (len(parts) == 1 and not count and not _drifted(parts[0])):
                return
            loose = merged([sealed.part.segment for sealed in parts], dead)
            compact = self._wasteful(before.register)
            if compact:
                loose.slots = (np.cumsum(dead == 0) - 1).astype(np.uint32)[loose.slots]
            new = _sealed(loose, parts)
            with self._lock:
                self._swap(before, new, dead, compact)
                self._dead_count -= count

    def _swap(self, before: _State, new: _Sealed, dead: Array, compact: bool) -> None:
        newer = self._state.parts[len(before.parts) :]
        if not compact:
            self._state = _State((new, *newer), before.register)
            return
        register, number = before.register.compacted(dead)
        fresh = {int(number[slot]): form for slot, form in self._fresh.items()}
        self._index = HullIndex()
        for slot, form in fresh.items():
            self._index.add(slot, form)
        self._fresh = fresh
        self._state = _State((new, *(_renumbered(one, number) for one in newer)), register)

    # -- snapshots -----------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write everything to a directory, in the place of what is there."""
        with self._merging:
            self._seal()
            with self._lock:
                state = self._state
                slots = dict(state.register.slots)
                dead = state.register.dead[: state.register.size].copy()
            segments = [sealed.part.segment for sealed in state.parts] or [build_segment([])]
            loose = merged(segments, dead)
            number = np.zeros(state.register.size, np.uint32)
            number[list(slots.values())] = np.arange(len(slots))
            loose.slots = number[loose.slots]
            texts = [_text(state.register.text(slot)) for slot in slots.values()]
            segment = _sealed(loose, state.parts).part.segment
            snapshot.write(Path(path), segment, list(slots), texts)

    @classmethod
    def open(
        cls,
        path: str | Path,
        attributes: Attributes | None = None,
        *,
        functions: Functions | None = None,
        background: bool = True,
        verify: bool = True,
    ) -> Matcher:
        """A matcher over a snapshot, mapped into memory. `verify=False` skips the checksums."""
        found = snapshot.read(Path(path), attributes, functions, verify=verify)
        matcher = cls(attributes, functions=functions, background=background)
        part = Part(found.segment)
        register = Register(found.ids, found.texts)
        matcher._state = _State((_Sealed(part, Statistics(part)),), register)
        return matcher

    # -- matching ------------------------------------------------------------------------------

    def match(self, event: Event | str | bytes) -> list[Hashable]:
        """The ids of the filters that match one event: a mapping, or JSON text of an object."""
        if isinstance(event, (str, bytes)):
            event = _decoded(event)
        need_mapping(event)
        if self.attributes is not None:
            event = self.attributes.read(event)
        while True:
            before = self._replaced
            ids = self._match_now(event)
            if before == self._replaced and before % 2 == 0:
                return ids
            with self._lock:  # a filter was being replaced: wait until that is done, look again
                pass

    def _match_now(self, event: Event) -> list[Hashable]:
        slots: list[int] = []
        if self._fresh:
            with self._lock:  # so that no filter is between fresh and sealed
                state = self._state
                slots += self._match_fresh(event)
        else:
            state = self._state
        dead = state.register.dead
        for sealed in state.parts:
            slots += sealed.part.probe(event, dead)
        return state.register.ids_of(slots)

    def _match_fresh(self, event: Event) -> list[int]:
        values: dict[str, Key] = {}
        found = self._index.may_hold(event, values)
        return [slot for slot in found if self._fresh[slot].holds(event, values)]

    def match_pairs(self, events: Any, *, threads: int = 1) -> tuple[Array, Array]:
        """(event index, filter id) of every match, as two arrays, in the order of events."""
        starts, slots, register = self._lists(as_batch(events), threads)
        counts: Array = starts[1:] - starts[:-1]
        rows = np.repeat(np.arange(len(counts)), counts)
        ids: Array = register.id_objects()[slots]
        return rows, ids

    def match_batch(self, events: Any, *, threads: int = 1) -> Any:
        """A ListArray: for each event of a RecordBatch, Table or DataFrame the ids that match.

        Ids that are strings come as a dictionary; what a dictionary holds is the id.
        """
        starts, slots, register = self._lists(as_batch(events), threads)
        ids = register.id_column()
        large = starts[-1] >= 2**31
        offsets = pa.array(starts if large else starts.astype(np.int32))
        kind = pa.LargeListArray if large else pa.ListArray
        if pa.types.is_integer(ids.type):
            return kind.from_arrays(offsets, ids.take(pa.array(slots)))
        values = pa.DictionaryArray.from_arrays(pa.array(slots.astype(np.int32)), ids)
        return kind.from_arrays(offsets, values)

    def _lists(self, batch: pa.RecordBatch, threads: int) -> tuple[Array, Array, Register]:
        """(starts, slots): the slots of the filters that match event i are slots[starts[i]:...]."""
        if self.attributes is not None:
            batch = conformed(batch, self.attributes)
        with self._lock:
            self._seal()
            state = self._state
            dead = state.register.dead.copy()  # of this moment: a replaced filter is there once
        pieces = [batch.slice(at, BATCH) for at in range(0, batch.num_rows, BATCH)]
        many = _many(state.parts, len(dead))

        def run(piece: pa.RecordBatch) -> tuple[Array, Array]:
            return _joined(state.parts, dead, many, piece)

        if threads > 1 and len(pieces) > 1:
            with ThreadPoolExecutor(threads) as pool:
                found = list(pool.map(run, pieces))
        else:
            found = [run(piece) for piece in pieces]
        self._tidy()
        starts = [np.zeros(1, np.int64)]
        for piece_starts, _ in found:
            starts.append(piece_starts[1:] + starts[-1][-1])
        slots = [piece_slots for _, piece_slots in found] or [np.zeros(0, np.uint32)]
        return np.concatenate(starts), np.concatenate(slots), state.register

    # -- looking at it -------------------------------------------------------------------------

    def explain(self, id: Hashable, event: Event) -> Explanation:
        """Which tests of a filter passed and which failed."""
        return self.filter(id).explain(event)

    def filter(self, id: Hashable) -> Filter:
        """The filter of an id."""
        register = self._state.register
        return self._parsed(register.text(register.slot(id)))

    def stats(self) -> dict[str, int]:
        """Numbers on what is held: filters, boxes, parts, bytes."""
        state = self._state
        segments = [sealed.part.segment for sealed in state.parts]
        return {
            "filters": len(self),
            "fresh": len(self._fresh),
            "dead": self._dead_count,
            "parts": len(segments),
            "boxes": sum(len(segment.arrays.box_slot) for segment in segments),
            "terms": sum(len(segment.terms) for segment in segments),
            "residual_boxes": sum(len(segment.rest) for segment in segments),
            "index_bytes": sum(segment.arrays.nbytes for segment in segments),
        }


def _decoded(text: str | bytes) -> Event:
    try:
        event = msgspec.json.decode(text)
    except msgspec.DecodeError as problem:
        raise NotificationError(f"the event is not JSON: {problem}") from None
    if not isinstance(event, dict):
        raise NotificationError(f"found JSON {type(event).__name__}, expected an object")
    return event


def _text(filter_: Filter | str) -> str:
    return filter_ if isinstance(filter_, str) else filter_.sql()


def _many(parts: tuple[_Sealed, ...], slots: int) -> Array:
    many = np.zeros(slots, np.uint8)
    for sealed in parts:
        many[: sealed.part.segment.slots] |= sealed.part.segment.many
    return many


def _joined(
    parts: tuple[_Sealed, ...], dead: Array, many: Array, piece: pa.RecordBatch
) -> tuple[Array, Array]:
    found = [sealed.part.pairs(piece, dead, sealed.statistics.count) for sealed in parts]
    events = np.concatenate([e for e, _ in found]) if found else np.zeros(0, np.uint32)
    slots = np.concatenate([s for _, s in found]) if found else np.zeros(0, np.uint32)
    starts = np.empty(piece.num_rows + 1, np.int64)
    out = np.empty(len(slots), np.uint32)
    seen = np.full(len(many) if many.any() else 1, -1, np.int64)
    kept = kernels.group_by_event(events, slots, many, seen, starts, out)
    return starts, out[:kept]


def _sealed(loose: Loose, parts: tuple[_Sealed, ...]) -> _Sealed:
    """A part of these tests, with access tests chosen by what the old parts saw."""
    counts = _moved_counts(parts, {t.text: t.ranks for t in loose.terms if not t.elements})
    part = Part(put_together(loose, counts))
    seen = sum(sealed.statistics.seen for sealed in parts)
    return _Sealed(part, Statistics(part, counts, seen))


def _moved_counts(parts: tuple[_Sealed, ...], terms: Mapping[str, Ranks]) -> dict[str, Array]:
    out: dict[str, Array] = {}
    for sealed in parts:
        for term in sealed.part.segment.terms:
            counts = sealed.statistics.counts.get(term.text)
            if counts is not None and term.text in terms and not term.elements:
                found = moved(counts, term.ranks, terms[term.text])
                out[term.text] = out[term.text] + found if term.text in out else found
    return out


def _drifted(sealed: _Sealed) -> bool:
    """Whether other access tests would let far fewer candidates through."""
    return sealed.statistics.seen > 0 and excess(sealed.part, sealed.statistics.counts) > DRIFT


def _renumbered(sealed: _Sealed, number: Array) -> _Sealed:
    """A part that was sealed while slots were compacted."""
    old = sealed.part.segment
    slots = number[old.arrays.box_slot].astype(np.uint32)
    count = int(slots.max()) + 1 if len(slots) else 0
    many = (np.bincount(slots, minlength=count) > 1).astype(np.uint8)
    arrays = msgspec.structs.replace(old.arrays, box_slot=slots)
    segment = Segment(old.terms, arrays, old.rest, old.opaque, count, many)
    return _Sealed(Part(segment), sealed.statistics)
