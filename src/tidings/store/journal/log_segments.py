"""The segments of a journal: where their notifications are, and which segments can be dropped.

    older    segments before the checkpoint, which are indexed after a start
    current  segments after the checkpoint, which are indexed during a start

If the checkpoint is in the middle of a segment, the segment is in both `older` and `current`, and
each entry covers its own part of the segment.

`older` and `current` are dictionaries that are replaced as a whole, so a lookup needs no lock while
a thread writes.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator
from copy import copy
from pathlib import Path
from typing import NamedTuple

import msgspec

from tidings.routing.protocol import Limits
from tidings.store.groups import Packed, RecordPlace
from tidings.store.journal import entries as t
from tidings.store.journal.block_records import PackedBlock
from tidings.store.journal.mark_index import MarkIndex, RecordSpan, SpanColumn

LINGER = 60.0  # seconds to keep unneeded notifications, for subscribers that reconnect
SMALL = 64 << 10  # bytes below which the growing segment is not dropped


class Retention(msgspec.Struct, frozen=True):
    """Limits on the notifications that are kept for subscribers that have fallen behind, and on the
    disk space of the journal."""

    bytes: int = Limits().kept_bytes
    marks: int = Limits().kept_marks
    seconds: float = Limits().kept_seconds
    disk_bytes: int = Limits().disk_bytes


class LogSegment:
    """The index of one file of the log, or of a part of it."""

    def __init__(self, path: Path) -> None:
        self.marks = MarkIndex()
        self.serial = 0  # the highest serial in the segment
        self.size, self.written = 0, time.time()
        with contextlib.suppress(OSError):
            found = path.stat()
            self.size, self.written = found.st_size, found.st_mtime

    def add(self, records: Iterable[bytes | Packed | None], places: Iterable[RecordPlace]) -> None:
        """Index the notifications of a group."""
        marks: list[bytes] = []
        spans: list[RecordSpan] = []
        for record, place in zip(records, places, strict=True):
            if isinstance(record, PackedBlock):
                self.serial = max(self.serial, record.serial)
                shifted = record.spans.copy()
                shifted[:, [SpanColumn.START, SpanColumn.END]] += place.start
                self.marks.add(record.marks, shifted)
                continue
            if not isinstance(record, bytes) or record[:1] != t.NOTIFICATION:
                continue
            _, serial, _, name, many, _ = t.HEAD.unpack_from(record)
            self.serial = max(self.serial, serial)
            if many:
                start = t.HEAD.size + name
                marks.append(record[start : start + 16 * many])
                spans.append(RecordSpan(place.start, place.end, many))
        if spans:
            self.marks.add(b"".join(marks), spans)

    def join(self, other: LogSegment) -> LogSegment:
        """The combined index of two parts of a file: this one and `other`."""
        both = copy(self)
        both.marks = self.marks.join(other.marks)
        both.serial = max(self.serial, other.serial)
        both.size, both.written = max(self.size, other.size), max(self.written, other.written)
        return both


class Segments:
    """All segments of a journal."""

    def __init__(self) -> None:
        self.current: dict[int, LogSegment] = {}
        # None while older segments are still being read
        self.older: dict[int, LogSegment] | None = None

    def of(self, first: int, path: Path) -> LogSegment:
        """The current segment whose first group has this number."""
        if first not in self.current:
            self.current = {**self.current, first: LogSegment(path)}
        return self.current[first]

    def size(self) -> int:
        older, current = self.older or {}, self.current
        total = sum(one.size for first, one in older.items() if first not in current)
        for first, one in current.items():
            total += max(one.size, older[first].size) if first in older else one.size
        return total

    def grow_old(self) -> None:
        """After a new checkpoint, move all current segments except the last to `older`."""
        if self.older is not None and self.current:
            last = max(self.current)
            rest = {first: one for first, one in self.current.items() if first != last}
            self.older = _join_segments(self.older, rest)
            self.current = {last: self.current[last]}

    def keep(self, left: set[int]) -> None:
        """Keep only these segments, because the others were dropped."""
        self.older = {first: one for first, one in (self.older or {}).items() if first in left}
        self.current = {first: one for first, one in self.current.items() if first in left}

    def find(self, node: int, first: int, last: int) -> dict[int, RecordPlace]:
        """For each of these numbers at a node, the place of its notification."""
        found: dict[int, RecordPlace] = {}
        for table in (self.current, self.older or {}):
            # most requests are for recent notifications
            for segment in sorted(table, reverse=True):
                if len(found) > last - first:
                    return found
                for number, start, end in table[segment].marks.find(node, first, last):
                    found.setdefault(number, RecordPlace(segment, start, end))
        return found

    def droppable(self, retention: Retention, unneeded: int) -> Iterator[int]:
        """Segments that nobody needs or that exceed the retention, the oldest first. The growing
        segment is included only if it is not small."""
        if self.older is None:
            return
        every = _extents(self.older, self.current)
        size, now = sum(one.size for _, one in every), time.time()
        marks = sum(one.marks for _, one in every)
        for at, (first, one) in enumerate(every):
            is_last, age = at + 1 == len(every), now - one.written
            beyond = size > retention.bytes or marks > retention.marks or age > retention.seconds
            done = one.serial <= unneeded and age > LINGER
            if is_last and (one.size < SMALL or not one.serial):
                return
            if one.serial and not (beyond or done):
                return
            size -= one.size
            marks -= one.marks
            yield first


class Extent(NamedTuple):
    """The properties that decide whether a segment can be dropped."""

    serial: int
    size: int
    written: float
    marks: int


def _extents(
    older: dict[int, LogSegment], newer: dict[int, LogSegment]
) -> list[tuple[int, Extent]]:
    """Like `_join_segments`, but this only counts the marks, because it runs after every write."""
    found = []
    for first in sorted({*older, *newer}):
        both = [table[first] for table in (older, newer) if first in table]
        found.append((first, Extent(
            max(one.serial for one in both), max(one.size for one in both),
            max(one.written for one in both), sum(len(one.marks) for one in both),
        )))  # fmt: skip
    return found


def _join_segments(
    older: dict[int, LogSegment], newer: dict[int, LogSegment]
) -> dict[int, LogSegment]:
    """The segments of both dictionaries; if both have a part of a segment, the parts are
    combined."""
    return {
        **older,
        **{first: older[first].join(one) if first in older else one
           for first, one in newer.items()},
    }  # fmt: skip
