"""Counts how often filters fired: in each Python worker, and then in the driver.

    batch of rows ──match──> FireCounts ──TaskCounts, a few bytes each──> FireCounts of the driver

For N filters and B time buckets with rows, a tally has

    counts    [B, N]  how often each filter fired in each bucket; uint32 in a task, int64 in the
                      driver
    untimed   [N]     how often each filter fired on rows without a time
    first     [N]     the earliest time at which each filter fired
    last      [N]     the latest time
    earliest  [N, k]  the k sample rows of each filter

Cost: 4 bytes per count in a task and 8 in the driver, and briefly twice that when the array grows
or is sorted. A tally has at most MOST_COUNTS counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidings.matching.tallies import tally_kernels
from tidings.model import TidingsError

Array = npt.NDArray[Any]

MOST_COUNTS = 50_000_000
MOST_SAMPLES = 1_000_000
MOST_LETTERS = 200  # longer strings in a sample are cut off
NEVER = np.iinfo(np.int64).max  # stands for a missing time
_ALWAYS = np.iinfo(np.int64).min
_NEW = 1 << 40  # rows of the current batch get numbers from here on, kept samples from 0 on


class TooManyCounts(TidingsError):
    """A tally would exceed MOST_COUNTS."""

    def __init__(self, stretches: int) -> None:
        self.stretches = stretches
        super().__init__(f"found {stretches} time buckets")


class TaskCounts(msgspec.Struct, frozen=True):
    """The counts of one task, in the form that is sent to the driver; arrays are compressed
    bytes."""

    rows: int
    peak: int
    """The peak memory of the Python worker, in bytes; 0 if it is not known."""
    stretches: bytes = b""  # int64 [B]
    stretch_rows: bytes = b""  # int64 [B]
    counts: bytes = b""  # uint32 [B, N]
    totals: bytes = b""  # int64 [3, N]: untimed, first, last
    earliest: bytes = b""  # int64 [3, N, k]: times, orders, rows
    samples: bytes = b""  # an Arrow stream of the sample rows
    too_many: int = 0
    """The number of time buckets at which the task gave up; 0 if it finished."""


class FireCounts:
    """The counts of N filters over time, with k samples of each filter."""

    def __init__(self, filters: int, samples: int, kind: type = np.uint32) -> None:
        self.rows = 0
        self.peak = 0
        self.stretches = np.zeros(0, np.int64)  # bucket numbers, in the order of first occurrence
        self.untimed = np.zeros(filters, np.int64)
        self.first = np.full(filters, NEVER, np.int64)
        self.last = np.full(filters, _ALWAYS, np.int64)
        self._counts: Array = np.zeros((4, filters), kind)
        self._stretch_rows = np.zeros(4, np.int64)
        self._order = np.zeros(0, np.int64)  # the permutation that sorts the buckets
        self._earliest = Earliest(filters, samples)

    @property
    def counts(self) -> Array:
        return self._counts[: len(self.stretches)]

    @property
    def stretch_rows(self) -> Array:
        """The number of rows in each time bucket."""
        return self._stretch_rows[: len(self.stretches)]

    @property
    def earliest(self) -> Earliest:
        return self._earliest

    # -- in a task -----------------------------------------------------------------------------

    def add_rows(self, matched: tuple[Array, Array], times: Array, numbers: Array | None) -> None:
        """Count the matches (starts, places) of some rows; NEVER stands for a missing time.

        `numbers` contains the time bucket of each row, or is None if there is no time column.
        """
        self.rows += len(times)
        slots = np.full(len(times), -1, np.int64)
        if numbers is not None:
            timed = times != NEVER
            slots[timed] = self._slots(numbers[timed])
            self._stretch_rows += np.bincount(slots[timed], minlength=len(self._stretch_rows))
        tally_kernels.count_fires(
            *matched, slots, times, self._counts, self.untimed, self.first, self.last
        )

    def make_part(self, peak: int) -> TaskCounts:
        return TaskCounts(
            self.rows,
            peak,
            _pack(self.stretches),
            _pack(self.stretch_rows),
            _pack(self.counts),
            _pack(np.stack([self.untimed, self.first, self.last])),
            *self._earliest.pack(),
        )

    # -- in the driver -------------------------------------------------------------------------

    def add(self, part: TaskCounts) -> None:
        """Add the counts of a task; raise TooManyCounts beyond MOST_COUNTS."""
        if part.too_many:
            raise TooManyCounts(part.too_many)
        self.rows += part.rows
        self.peak = max(self.peak, part.peak)
        if not part.rows:
            return
        filters = len(self.untimed)
        slots = self._slots(_unpack(part.stretches))
        self._stretch_rows[slots] += _unpack(part.stretch_rows)
        self._counts[slots] += _unpack(part.counts, np.uint32).reshape(-1, filters)
        untimed, first, last = _unpack(part.totals).reshape(3, filters)
        self.untimed += untimed
        np.minimum(self.first, first, out=self.first)
        np.maximum(self.last, last, out=self.last)
        self._earliest.add(part.earliest, part.samples)

    def sort(self) -> None:
        """Sort the time buckets."""
        order = np.argsort(self.stretches)
        self._counts = self._counts[order]
        self._stretch_rows = self._stretch_rows[order]
        self.stretches = self.stretches[order]
        self._order = np.arange(len(order))

    # -- time buckets --------------------------------------------------------------------------

    def _slots(self, numbers: Array) -> Array:
        """The rows of `counts` for time buckets; new buckets get new rows."""
        distinct, at = np.unique(numbers, return_inverse=True)
        known = self.stretches[self._order]
        place = np.searchsorted(known, distinct)
        there = place < len(known)
        there[there] = known[place[there]] == distinct[there]
        if not there.all():
            self._grow(distinct[~there])
            place = np.searchsorted(self.stretches[self._order], distinct)
        slots: Array = self._order[place][at]
        return slots

    def _grow(self, new: Array) -> None:
        count, filters = len(self.stretches) + len(new), len(self.untimed)
        if count * filters > MOST_COUNTS:
            raise TooManyCounts(count)
        self.stretches = np.concatenate([self.stretches, new])
        self._order = np.argsort(self.stretches)
        room = len(self._counts)
        if count > room:
            wanted = max(count, min(2 * room, MOST_COUNTS // max(filters, 1)))
            grown = np.zeros((wanted, filters), self._counts.dtype)
            grown[:room] = self._counts
            self._counts = grown
            self._stretch_rows = np.append(self._stretch_rows, np.zeros(wanted - room, np.int64))


class Earliest:
    """The k sample rows of each filter: the earliest rows, and among rows of the same time those
    with the lowest hash, so that the choice does not depend on partitions.

        times, orders, rows   int64 [N, k], sorted by time and order; row -1 means none
        table                 the rows; superseded ones are dropped when there are too many
    """

    def __init__(self, filters: int, samples: int) -> None:
        self.times = np.full((filters, samples), NEVER, np.int64)
        self.orders = np.full((filters, samples), NEVER, np.int64)
        self.rows = np.full((filters, samples), -1, np.int64)
        self._tables: list[Any] = []
        self._held = 0

    def add_rows(
        self, matched: tuple[Array, Array], times: Array, orders: Array, columns: dict[str, Any]
    ) -> None:
        """Take samples from a batch; `columns` are the columns of a sample."""
        tally_kernels.keep_earliest(
            *matched, times, orders, _NEW, self.times, self.orders, self.rows
        )
        new = self.rows >= _NEW
        if new.any():
            taken, at = np.unique(self.rows[new] - _NEW, return_inverse=True)
            some = pa.array(taken)
            shown = {name: shorten_texts(column.take(some)) for name, column in columns.items()}
            self.rows[new] = at + self._held
            self._hold(pa.table(shown))

    def pack(self) -> tuple[bytes, bytes]:
        if not self._tables:
            return b"", b""
        self._tidy()
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, self._tables[0].schema) as stream:
            stream.write_table(self._tables[0])
        return (
            _pack(np.stack([self.times, self.orders, self.rows])),
            _compress(sink.getvalue()),
        )

    def add(self, earliest: bytes, samples: bytes) -> None:
        """Merge the samples of a task."""
        if not earliest:
            return
        times, orders, rows = _unpack(earliest).reshape(3, *self.times.shape)
        table = pa.ipc.open_stream(
            pa.decompress(samples[8:], _raw_size(samples), "zstd")
        ).read_all()
        rows = np.where(rows < 0, rows, rows + self._held)
        both = [
            np.concatenate(pair, axis=1)
            for pair in ((self.times, times), (self.orders, orders), (self.rows, rows))
        ]
        order = np.lexsort((both[1], both[0]), axis=1)[:, : self.times.shape[1]]
        self.times, self.orders, self.rows = (
            np.take_along_axis(array, order, axis=1) for array in both
        )
        self._hold(table)

    def samples_of(self, place: int) -> list[tuple[int, dict[str, Any]]]:
        """The samples of a filter, as pairs of time and row."""
        self._tidy()
        rows = self.rows[place]
        kept = rows >= 0
        if not kept.any():
            return []
        shown = self._tables[0].take(pa.array(rows[kept])).to_pylist()
        return list(zip(self.times[place][kept].tolist(), shown, strict=True))

    def _hold(self, table: Any) -> None:
        self._tables.append(table)
        self._held += table.num_rows
        if self._held > 2 * self.rows.size + 10_000 or len(self._tables) > 64:
            self._tidy()

    def _tidy(self) -> None:
        """Drop superseded rows."""
        if not self._tables:
            return
        whole = pa.concat_tables(self._tables) if len(self._tables) > 1 else self._tables[0]
        kept = self.rows >= 0
        used, at = np.unique(self.rows[kept], return_inverse=True)
        if len(self._tables) > 1 or len(used) < whole.num_rows:
            self.rows[kept] = at
            whole = whole.take(pa.array(used)).combine_chunks()
        self._tables, self._held = [whole], whole.num_rows


def shorten_texts(column: Any) -> Any:
    """Cut long strings for a sample; nested values become JSON."""
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return pc.utf8_slice_codeunits(column, 0, MOST_LETTERS)
    if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        texts = [None if one is None else _text(one)[:MOST_LETTERS] for one in column.to_pylist()]
        return pa.array(texts, pa.string())
    return column


def _text(value: Any) -> str:
    return msgspec.json.encode(value, enc_hook=str).decode()


# A compressed array begins with its uncompressed length.


def _pack(array: Array) -> bytes:
    return _compress(pa.py_buffer(np.ascontiguousarray(array)))


def _compress(buffer: Any) -> bytes:
    if not buffer.size:
        return b""
    compressed: bytes = pa.compress(buffer, "zstd", asbytes=True)
    return int(buffer.size).to_bytes(8, "little") + compressed


def _raw_size(packed: Sequence[int] | bytes) -> int:
    return int.from_bytes(bytes(packed[:8]), "little")


def _unpack(packed: bytes, kind: type = np.int64) -> Array:
    if not packed:
        return np.zeros(0, kind)
    raw = pa.decompress(packed[8:], _raw_size(packed), "zstd")
    found: Array = np.frombuffer(raw, kind)
    return found
