"""The segments of a journal: where their notifications are, and which of them can go.

    older    those before the checkpoint; where their notifications are is found out after a start
    current  those after it, which are known at once

A segment is in both where the checkpoint is in the middle of it, each with its part.

Both are dictionaries that are replaced as a whole, so that whoever looks something up needs no
lock while a thread writes.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from copy import copy
from pathlib import Path

import msgspec

from tidings.routing.protocol import Limits
from tidings.store.groups import Group, Place
from tidings.store.journal import things as t
from tidings.store.journal.mark_index import MarkIndex, Span

LINGER = 60.0  # seconds that notifications stay which nobody needs: who was cut off comes back
SMALL = 64 << 10  # bytes of a segment that is not worth being ended for that


class Retention(msgspec.Struct, frozen=True):
    """What stays on the disk for those that are behind, and how much the journal may take."""

    bytes: int = Limits().kept_bytes
    marks: int = Limits().kept_marks
    seconds: float = Limits().kept_seconds
    disk_bytes: int = Limits().disk_bytes


class Segment:
    """What is known of a file of the log."""

    def __init__(self, path: Path) -> None:
        self.marks = MarkIndex()
        self.serial = 0  # the last one in it
        self.size, self.written = 0, time.time()
        with contextlib.suppress(OSError):
            found = path.stat()
            self.size, self.written = found.st_size, found.st_mtime

    def add(self, group: Group) -> None:
        """Take in the notifications of a group."""
        marks: list[bytes] = []
        spans: list[Span] = []
        for record, place in zip(group.records, group.places, strict=True):
            if record is None or record[:1] != t.NOTIFICATION:
                continue
            _, serial, _, name, many, _ = t.HEAD.unpack_from(record)
            self.serial = max(self.serial, serial)
            if many:
                start = t.HEAD.size + name
                marks.append(record[start : start + 16 * many])
                spans.append(Span(place.start, place.end, many))
        if spans:
            self.marks.add(b"".join(marks), spans)

    def joined(self, other: Segment) -> Segment:
        """One with what is known of two parts of a file."""
        both = copy(self)
        both.marks = self.marks.joined(other.marks)
        both.serial = max(self.serial, other.serial)
        both.size, both.written = max(self.size, other.size), max(self.written, other.written)
        return both


class Segments:
    """All segments of a journal."""

    def __init__(self) -> None:
        self.current: dict[int, Segment] = {}
        self.older: dict[int, Segment] | None = None  # while they are read

    def of(self, first: int, path: Path) -> Segment:
        """The current segment that begins with a group."""
        if first not in self.current:
            self.current = {**self.current, first: Segment(path)}
        return self.current[first]

    def size(self) -> int:
        return sum(one.size for one in _joined(self.older or {}, self.current).values())

    def grow_old(self) -> None:
        """There is a checkpoint: all but the last belong to those before it."""
        if self.older is not None and self.current:
            last = max(self.current)
            rest = {first: one for first, one in self.current.items() if first != last}
            self.older = _joined(self.older, rest)
            self.current = {last: self.current[last]}

    def keep(self, left: set[int]) -> None:
        """The others were dropped."""
        self.older = {first: one for first, one in (self.older or {}).items() if first in left}
        self.current = {first: one for first, one in self.current.items() if first in left}

    def find(self, node: int, first: int, last: int) -> dict[int, Place]:
        """Where the notifications are that have numbers of a node."""
        found: dict[int, Place] = {}
        for table in (self.current, self.older or {}):
            for segment in sorted(table, reverse=True):  # what is missed is mostly of late
                if len(found) > last - first:
                    return found
                for number, start, end in table[segment].marks.find(node, first, last):
                    found.setdefault(number, Place(segment, start, end))
        return found

    def droppable(self, retention: Retention, unneeded: int) -> Iterator[int]:
        """Segments of which nobody needs anything, or which are beyond what is kept, the oldest
        first; also the one that grows, where it is worth ending it."""
        if self.older is None:
            return
        every = sorted(_joined(self.older, self.current).items())
        size, now = sum(one.size for _, one in every), time.time()
        marks = sum(len(one.marks) for _, one in every)
        for at, (first, one) in enumerate(every):
            is_last, age = at + 1 == len(every), now - one.written
            beyond = size > retention.bytes or marks > retention.marks or age > retention.seconds
            done = one.serial <= unneeded and age > LINGER
            if is_last and (one.size < SMALL or not one.serial):
                return
            if one.serial and not (beyond or done):
                return
            size -= one.size
            marks -= len(one.marks)
            yield first


def _joined(older: dict[int, Segment], newer: dict[int, Segment]) -> dict[int, Segment]:
    """All segments of both; one that is in both, with both parts."""
    return {
        **older,
        **{first: older[first].joined(one) if first in older else one
           for first, one in newer.items()},
    }  # fmt: skip
