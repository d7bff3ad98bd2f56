"""Walks through the groups of a log, and finds damage.

Bytes after the last complete group, without a valid group after them, are torn: a writer that died
left them. Any other difference from what was written is damage.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

import msgspec

from tidings.store.groups import layout
from tidings.store.groups.end_mark import EndMark


class Position(msgspec.Struct, frozen=True):
    """The end of a group. The end of group 0 is the beginning of the log."""

    number: int = 0
    segment: int = 1
    offset: int = 0
    chain: int = 0


START = Position()


def end_of(mark: EndMark) -> Position:
    """The end of the last acknowledged group."""
    return Position(mark.number, mark.segment, mark.offset, mark.chain)


class RecordPlace(NamedTuple):
    """The place of a record: its segment, and its start and end in the segment."""

    segment: int
    start: int
    end: int


class Group(msgspec.Struct, frozen=True):
    """Records that were appended together."""

    number: int
    records: list[bytes | None]  # None for a corrupt record
    places: list[RecordPlace]
    end: Position


class WalkedLog(Protocol):
    """The part of a log's interface that a walk needs."""

    @property
    def folder(self) -> Path: ...

    @property
    def id(self) -> int: ...

    def segments(self) -> list[int]:
        """The existing segments, as the numbers of their first groups."""

    def path_of(self, segment: int) -> Path: ...

    def read_mark(self) -> EndMark | None:
        """How far the log has been acknowledged; None if there is no mark."""


class Walk:
    """The groups of a log between two positions, and the damage that was found."""

    def __init__(self, log: WalkedLog, after: Position, upto: Position | None) -> None:
        self._log = log
        self._upto = upto
        self._mark: EndMark | None = None
        self._is_first = True  # whether the walk is in its first segment
        self.end = after
        """The end of the last good group."""
        self.damages: list[str] = []
        """One sentence for each place where data is missing or corrupt."""
        self.torn = False
        """Whether torn bytes follow the last good group."""
        self.finished = False

    def __iter__(self) -> Iterator[Group]:
        begin, mark = self.end, self._log.read_mark()
        if begin.number and mark and begin.segment < mark.oldest == begin.number + 1:
            # the segment of this position was dropped, so the walk begins with the next one
            begin = self.end = Position(begin.number, mark.oldest, 0, begin.chain)
        self._mark = mark
        firsts = [first for first in self._log.segments() if first >= begin.segment]
        expected = begin.segment if begin.number or mark is None else mark.oldest
        if (begin.number or (mark is not None and mark.number)) and expected not in firsts:
            self.damages.append(f"{self._log.path_of(expected)} is missing")
        for at, first in enumerate(firsts):
            offset = begin.offset if first == begin.segment else 0
            self._is_first = not at
            yield from self._segment(first, offset, is_last=at + 1 == len(firsts))
            if self._is_done():
                break
        if self._upto is not None and self.end.number < self._upto.number:
            self.damages.append(
                f"the log {self._log.folder} ends with group {self.end.number}, expected group "
                f"{self._upto.number}, which was acknowledged"
            )
        self.finished = True

    def _is_done(self) -> bool:
        return self._upto is not None and self.end.number >= self._upto.number

    def _segment(self, first: int, offset: int, *, is_last: bool) -> Iterator[Group]:
        path = self._log.path_of(first)
        try:
            with path.open("rb") as file:
                if (size := os.fstat(file.fileno()).st_size) < offset:
                    self._damage(path, size, f"the file ends, expected at least {offset:,} bytes")
                file.seek(offset)
                data = file.read()
        except FileNotFoundError:
            self.damages.append(f"{path} is missing")
            return
        at = 0 if offset else self._head(path, first, data, is_last=is_last)
        while at < len(data) and not self._is_done():
            head = layout.decode_group_head(self._log.id, data, at)
            spans = None
            if head is not None and head.number > self.end.number:
                spans = layout.split_records(data, at, head)
            if head is None or spans is None:
                following = self._next_group(data, at + 1)
                if following is not None or not is_last or self._is_marked(self.end.number + 1):
                    self._damage(path, offset + at, "the data is corrupt or cut off")
                self.torn = following is None and is_last
                at = len(data) if following is None else following
                continue
            records = [layout.record_at(data, *span) for span in spans]
            bad = sum(record is None for record in records)
            behind = at + layout.GROUP_HEAD + head.size
            if bad and is_last and self._mark and not self._is_marked(head.number) and \
                    self._next_group(data, behind) is None:  # fmt: skip
                self.torn, at = True, len(data)  # some sectors of the group never reached the disk
                continue
            if head.number != self.end.number + 1 or head.before != self.end.chain:
                self._damage(path, offset + at, f"the data does not follow group {self.end.number}")
            self.end = Position(head.number, first, offset + behind, head.chain)
            if self._mark and head.number == self._mark.number and head.chain != self._mark.chain:
                self._damage(path, offset + at, "the group is not the one that was acknowledged")
            if bad:
                self._damage(path, offset + at, f"corrupt records in the group: {bad} of "
                             f"{len(records)}")  # fmt: skip
            at = behind
            places = [RecordPlace(first, offset + start, offset + end) for start, end in spans]
            yield Group(head.number, records, places, self.end)

    def _head(self, path: Path, first: int, data: bytes, *, is_last: bool) -> int:
        """Check the head of a segment; return where its groups begin."""
        head, end = layout.decode_segment_head(data), self.end
        if head is None:
            empty = self._next_group(data, 0) is None
            if empty and is_last and first == end.number + 1:
                self.torn = True  # the writer died before the first group
                return len(data)
            self._damage(path, 0, "the head of the segment is corrupt")
        elif self._is_first and not end.number and head[:2] == (self._log.id, first):
            # older segments may have been dropped, so the chain begins with this segment; it must
            # not begin again after a segment that has lost all its groups
            self.end = Position(head.first - 1, first, 0, head.chain)
        elif head != (self._log.id, end.number + 1, end.chain):
            self._damage(path, 0, f"the data does not follow group {end.number}")
        return min(len(data), layout.SEGMENT_HEAD)

    def _is_marked(self, number: int) -> bool:
        """Whether it is certain that a group was acknowledged."""
        return self._mark is not None and number <= self._mark.number

    def _next_group(self, data: bytes, at: int) -> int | None:
        """Where the next good group begins."""
        while (at := data.find(layout.GROUP_MAGIC, at)) >= 0:
            head = layout.decode_group_head(self._log.id, data, at)
            if head is not None and head.number > self.end.number and \
                    layout.split_records(data, at, head) is not None:  # fmt: skip
                return at
            at += 1
        return None

    def _damage(self, path: Path, offset: int, problem: str) -> None:
        self.damages.append(f"{path}, byte {offset:,}: {problem}")
