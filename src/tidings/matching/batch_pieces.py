"""Match a batch against all parts, in pieces and threads, and group the matches by event.

With hundreds of matches per event, writing the matches costs as much as finding them. So every
array is written once, in place, by the thread that handles the piece.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidings.matching.jit import array_pool
from tidings.matching.matcher_state import MatcherState
from tidings.matching.segments import join_kernels
from tidings.model import TidingsError

Array = npt.NDArray[Any]
Item = TypeVar("Item")
Result = TypeVar("Result")
Lists = tuple[Array, Array]  # (starts, slots): event i has slots[starts[i] : starts[i + 1]]
BATCH = 65536
LEAST_PIECE = 8192  # a thread gets at least this many events of a batch


def match_lists(
    state: MatcherState, dead: Array, batch: pa.RecordBatch, threads: int
) -> list[Lists]:
    """For each piece of the batch and each event in it, the slots of the filters that match the
    event."""
    many = state.flag_multi_box(len(dead))

    def run(piece: pa.RecordBatch) -> Lists:
        return _group_by_event(_chunks(state, dead, piece), many, piece.num_rows)

    return _run_in_threads(run, _pieces(batch, threads), threads)


def match_counts(state: MatcherState, dead: Array, batch: pa.RecordBatch, threads: int) -> Array:
    """How many filters match each event."""
    many = state.flag_multi_box(len(dead))

    def run(piece: pa.RecordBatch) -> Array:
        counts = np.zeros(piece.num_rows, np.int64)
        starts, _ = _group_by_event(_chunks(state, dead, piece, counts), many, piece.num_rows)
        total: Array = counts + np.diff(starts)
        return total

    found = _run_in_threads(run, _pieces(batch, threads), threads)
    return np.concatenate([np.zeros(0, np.int64), *found])


def starts_of(pieces: Sequence[Lists]) -> Array:
    """The index of the first match of each event, over all pieces."""
    out = [np.zeros(1, np.int64)]
    for starts, _ in pieces:
        out.append(starts[1:] + out[-1][-1])
    return np.concatenate(out)


def values_of(pieces: Sequence[Lists], values: Array, threads: int) -> Array:
    """For every match, the value that belongs to its slot, concatenated over all pieces."""
    out = array_pool.empty(sum(len(slots) for _, slots in pieces), values.dtype)

    def fill(item: tuple[int, Array]) -> None:
        first, slots = item
        # "clip" avoids a copy; slots are always within bounds
        np.take(values, slots, out=out[first : first + len(slots)], mode="clip")

    _run_in_threads(fill, _with_offsets(slots for _, slots in pieces), threads)
    return out


def rows_of(pieces: Sequence[Lists], threads: int) -> Array:
    """For every match, the index of its event."""
    out = array_pool.empty(sum(len(slots) for _, slots in pieces), np.int64)
    events = _with_offsets(starts[1:] for starts, _ in pieces)
    matches = _with_offsets(slots for _, slots in pieces)

    def fill(number: int) -> None:
        join_kernels.number_rows(pieces[number][0], events[number][0], out[matches[number][0] :])

    _run_in_threads(fill, range(len(pieces)), threads)
    return out


def _pieces(batch: pa.RecordBatch, threads: int) -> list[pa.RecordBatch]:
    if type(threads) is not int or threads < 1:
        raise TidingsError(f"threads is {threads!r}, expected a whole number of at least 1")
    size = BATCH
    if threads > 1:  # one piece per thread, unless the pieces would become too small for the join
        size = max(min(BATCH, -(-batch.num_rows // threads)), LEAST_PIECE)
    return [batch.slice(at, size) for at in range(0, batch.num_rows, size)]


def _run_in_threads(
    work: Callable[[Item], Result], items: Sequence[Item], threads: int
) -> list[Result]:
    """The results in order; up to `threads` items are processed at once."""
    if threads > 1 and len(items) > 1:
        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(work, items))
    return [work(item) for item in items]


def _with_offsets(arrays: Iterable[Array]) -> list[tuple[int, Array]]:
    """Each array, with the total length of the arrays before it."""
    out, before = [], 0
    for array in arrays:
        out.append((before, array))
        before += len(array)
    return out


def _chunks(
    state: MatcherState, dead: Array, piece: pa.RecordBatch, counts: Array | None = None
) -> list[tuple[Array, Array]]:
    """The matches in all parts, as (events, slots); see Part.pairs."""
    found: list[tuple[Array, Array]] = []
    for sealed in state.parts:
        found += sealed.part.pairs(piece, dead, sealed.statistics.count, counts)
        if sealed.diagrams is not None:
            found += sealed.diagrams.pairs(piece, dead)
    return found


def _group_by_event(chunks: Sequence[tuple[Array, Array]], many: Array, rows: int) -> Lists:
    """Turn pairs of an event and a slot into one list of slots per event, without repeats."""
    starts = np.zeros(rows + 1, np.int64)
    for events, _ in chunks:
        join_kernels.count_events(events, starts)
    np.cumsum(starts, out=starts)
    out = array_pool.empty(int(starts[-1]), np.uint32)
    place = starts[:-1].copy()
    repeats = False
    for events, slots in chunks:
        repeats |= join_kernels.put_slots(events, slots, many, place, out)
    if repeats:
        seen = np.full(len(many), -1, np.int64)
        out = out[: join_kernels.drop_repeats(starts, out, many, seen)]
    return starts, out
