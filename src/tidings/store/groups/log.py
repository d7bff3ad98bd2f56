"""A log of groups in a folder: what was appended together is there together, and nothing that was
acknowledged can be altered, swapped or cut off without being noticed.

    00000000000000000001.log    groups 1 to 811
    00000000000000000812.log    groups from 812 on; the last segment is the one that grows
    end                         how far the log was acknowledged; see end_mark.py

How it is used. One process at a time writes, by a lock that is the owner's business; any number
read. Records are bytes that mean something to the owner alone.

    log = GroupLog(folder)
    walk = log.walk()                         or from a position that the owner kept
    for group in walk: ...                    group.records: bytes, or None where one was altered
    loss = log.take_end(walk)                 sentences about what is missing; [] is the usual case
    group = log.append([b"...", b"..."])      on the disk and marked when this returns
    log.read(group.places[:1])                records again, checked; None for one that was altered

A reader that only follows asks `acknowledged()` and reads up to there: `walk(after, upto)`.

What a walk finds beyond the last whole group, with no good group behind it, is what a writer left
that died; nobody was told of it, and `take_end` cuts it off. All else that is not as it was written
is in `walk.damages`. It never raises for damage: the owner decides whether to go on.

Cost: a group is one write and one sync, and 40 bytes; a record 8 bytes and a checksum of some
0.3 us per kilobyte. A walk reads a segment at a time into memory.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from tidings.model import EnvironmentProblem
from tidings.store.files import FILE_MODE, make_folder, replace_file, sync, write_at
from tidings.store.groups import layout
from tidings.store.groups.end_mark import EndMark, Mark

SEGMENT_BYTES = 32 << 20
DIGITS = 20
ASIDE = "aside"


class Position(msgspec.Struct, frozen=True):
    """The end of a group; of group 0, the beginning of the log."""

    number: int = 0
    segment: int = 1
    offset: int = 0
    chain: int = 0


START = Position()


class Place(NamedTuple):
    """Where a record is: its segment, and the bytes there."""

    segment: int
    start: int
    end: int


class Group(msgspec.Struct, frozen=True):
    """Records that were appended together."""

    number: int
    records: list[bytes | None]  # None: that one was altered
    places: list[Place]
    end: Position


class LostEnd(EnvironmentProblem):
    """A write that failed and could not be taken back: the log must be opened again."""


class Walk:
    """The groups of a log from one position to another, and what was wrong with them."""

    def __init__(self, log: GroupLog, after: Position, upto: Position | None) -> None:
        self._log = log
        self._upto = upto
        self.end = after
        """The end of the last good group."""
        self.damages: list[str] = []
        """A sentence for each place where something is missing or was altered."""
        self.torn = False
        """Does something follow that is no whole group?"""
        self.finished = False

    def __iter__(self) -> Iterator[Group]:
        begin, mark = self.end, self._log.acknowledged()
        firsts = [first for first in self._log.segments() if first >= begin.segment]
        expected = begin.segment if begin.number or mark is None else mark.oldest
        if (begin.number or mark is not None) and expected not in firsts:
            self.damages.append(f"{self._log.path_of(expected)} is missing")
        for at, first in enumerate(firsts):
            offset = begin.offset if first == begin.segment else 0
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
                if following is not None or not is_last:
                    self._damage(path, offset + at, "was altered")
                self.torn = following is None and is_last
                at = len(data) if following is None else following
                continue
            if head.number != self.end.number + 1 or head.before != self.end.chain:
                self._damage(path, offset + at, f"does not follow group {self.end.number}")
            self.end = Position(
                head.number, first, offset + at + layout.GROUP_HEAD + head.size, head.chain
            )
            records = [layout.record_at(data, *span) for span in spans]
            bad = sum(record is None for record in records)
            if bad:
                self._damage(path, offset + at, f"begins a group of {len(records)} records, of "
                             f"which {bad} were altered")  # fmt: skip
            at += layout.GROUP_HEAD + head.size
            places = [Place(first, offset + start, offset + end) for start, end in spans]
            yield Group(head.number, records, places, self.end)

    def _head(self, path: Path, first: int, data: bytes, *, is_last: bool) -> int:
        """Check the head of a segment; where its groups begin."""
        head, end = layout.decode_segment_head(data), self.end
        if head is None:
            empty = self._next_group(data, 0) is None
            if empty and is_last and first == end.number + 1:
                self.torn = True  # its writer died before there was a group in it
                return len(data)
            self._damage(path, 0, "was altered")
        elif not end.number and head[:2] == (self._log.id, first):
            # older segments may have been dropped: the chain begins where the files do
            self.end = Position(head.first - 1, first, 0, head.chain)
        elif head != (self._log.id, end.number + 1, end.chain):
            self._damage(path, 0, f"does not follow group {end.number}")
        return min(len(data), layout.SEGMENT_HEAD)

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
        self.damages.append(f"{path}: byte {offset:,} {problem}")


class GroupLog:
    """See the top of the module."""

    def __init__(self, folder: str | Path, *, segment_bytes: int = SEGMENT_BYTES) -> None:
        self.folder = Path(folder)
        self.segment_bytes = segment_bytes
        self.id = 0  # tells the segments of one log from those of another
        self._mark = EndMark(self.folder)
        self._end: Position | None = None
        self._handle = -1
        self._open = 0  # the segment that the handle is of
        self._broken = ""
        self._fresh = False  # the next group begins a segment
        self._oldest = 0  # segment that was not dropped

    # -- reading -------------------------------------------------------------------------------

    def segments(self) -> list[int]:
        """The segments that are there, by their first groups."""
        try:
            stems = [path.stem for path in self.folder.iterdir() if path.suffix == ".log"]
        except FileNotFoundError:
            return []
        return sorted(int(one) for one in stems if len(one) == DIGITS and one.isdecimal())

    def path_of(self, segment: int) -> Path:
        return self.folder / f"{segment:0{DIGITS}}.log"

    def acknowledged(self) -> Mark | None:
        """How far the log is acknowledged, by whichever process; None where nothing says it."""
        return self._mark.read()

    def walk(self, after: Position = START, upto: Position | None = None) -> Walk:
        """Go through the groups after a position, as far as there are any or up to another."""
        if not self.id:
            self.id = self._known_id()
        return Walk(self, after, upto)

    def _known_id(self) -> int:
        """The id that the mark tells, or else the first segment that tells one; 0 without."""
        mark = self._mark.read()
        if mark is not None:
            return mark.log
        for segment in self.segments():
            with contextlib.suppress(FileNotFoundError), self.path_of(segment).open("rb") as file:
                head = layout.decode_segment_head(file.read(layout.SEGMENT_HEAD))
                if head is not None:
                    return head.log
        return 0

    def read(self, places: Iterable[Place]) -> list[bytes | None]:
        """Some records; None for one that was altered or is not there any more."""
        found: list[bytes | None] = []
        handle, opened = -1, 0
        try:
            for place in places:
                if place.segment != opened:
                    if handle >= 0:
                        os.close(handle)
                    handle, opened = _opened(self.path_of(place.segment)), place.segment
                begin = place.start - layout.RECORD_HEAD
                data = b"" if handle < 0 else os.pread(handle, place.end - begin, begin)
                whole = len(data) == place.end - begin
                found.append(
                    layout.record_at(data, layout.RECORD_HEAD, len(data)) if whole else None
                )
        finally:
            if handle >= 0:
                os.close(handle)
        return found

    # -- writing: for the one that has the lock ------------------------------------------------

    @property
    def end(self) -> Position:
        """Where the next group goes; known once a walk was taken."""
        if self._end is None:
            raise EnvironmentProblem(f"the log {self.folder} was not read to its end yet")
        return self._end

    def losses(self, walk: Walk) -> list[str]:
        """What was acknowledged and is missing, after a walk to the end; empty where nothing is."""
        assert walk.finished, "a walk is judged when it is through"
        losses = list(walk.damages)
        mark, end = self._mark.read(), walk.end
        if mark is None and end.number:
            losses.append(f"the end mark of the log {self.folder} is missing or was altered")
        elif mark is not None and mark.number > end.number:
            losses.append(
                f"the log {self.folder} ends with group {end.number}, and was acknowledged up to "
                f"group {mark.number}"
            )
        return losses

    def take_end(self, walk: Walk) -> list[str]:
        """Go on writing where a walk ended, and give back `losses`. What is torn is cut off, and
        the end is marked; from then on a loss is not noticed any more."""
        losses = self.losses(walk)
        mark, end = self._mark.read(), walk.end
        make_folder(self.folder)
        if walk.torn or losses:
            self._cut(end, keep=bool(losses))
        if self.path_of(end.segment).exists():
            sync(self.path_of(end.segment))
            sync(self.folder)
        self._close_segment()
        self._broken, self._oldest = "", 0
        self._end, self._fresh = end, bool(losses)
        if end.number and (mark is None or mark.number != end.number or losses):
            self._write_mark(end, 0 if mark is None else mark.value, sync_now=True)
        return losses

    def append(self, records: Sequence[bytes], value: int = 0) -> Group:
        """Append a group; it is on the disk and marked when this returns. `value` goes into the
        mark. When it fails nothing was appended; `LostEnd` where that is not certain."""
        if self._broken:
            raise LostEnd(self._broken)
        end = self.end
        try:
            if self._fresh or not end.offset or end.offset >= self.segment_bytes:
                end = self._begin_segment(end)
            data, chain = layout.encode_group(self.id, end.number + 1, end.chain, records)
            handle = self._segment_handle(end.segment)
            write_at(handle, data, end.offset)
            os.fdatasync(handle)
            after = Position(end.number + 1, end.segment, end.offset + len(data), chain)
            self._write_mark(after, value)
        except OSError as problem:
            self._take_back(end, problem)
        self._end, self._fresh = after, False
        places, start = [], end.offset + layout.GROUP_HEAD
        for record in records:
            start += layout.RECORD_HEAD
            places.append(Place(end.segment, start, start + len(record)))
            start += len(record)
        return Group(after.number, list(records), places, after)

    def drop_before(self, segment: int) -> None:
        """Remove segments before one; the last one stays."""
        there = self.segments()
        gone = [first for first in there[:-1] if first < segment]
        mark = self._mark.read()
        if gone and mark is not None:
            # before the first is gone: one that is missing is damage unless the mark says so
            self._oldest = there[len(gone)]
            self._mark.write(msgspec.structs.replace(mark, oldest=self._oldest), sync=True)
            for first in gone:
                self.path_of(first).unlink(missing_ok=True)
            sync(self.folder)

    def begin_segment(self) -> None:
        """Let the next group begin a segment of its own."""
        self._fresh = True

    def close(self) -> None:
        self._close_segment()
        self._mark.close()

    # -- how -----------------------------------------------------------------------------------

    def _begin_segment(self, end: Position) -> Position:
        if not self.id:
            self.id = int.from_bytes(os.urandom(8), "little") | 1
        first = end.number + 1
        head = layout.encode_segment_head(layout.SegmentHead(self.id, first, end.chain))
        path = self.path_of(first)
        self._close_segment()
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, FILE_MODE)
        self._handle, self._open = handle, first
        write_at(handle, head, 0)
        os.fsync(handle)
        sync(self.folder)
        return Position(end.number, first, len(head), end.chain)

    def _segment_handle(self, segment: int) -> int:
        if self._open != segment:
            self._close_segment()
            self._handle = os.open(self.path_of(segment), os.O_RDWR | os.O_CLOEXEC)
            self._open = segment
        return self._handle

    def _close_segment(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
        self._handle, self._open = -1, 0

    def _write_mark(self, end: Position, value: int, *, sync_now: bool = False) -> None:
        self._oldest = self._oldest or next(iter(self.segments()), end.segment)
        mark = Mark(self.id, self._oldest, end.number, end.segment, end.offset, end.chain, value)
        self._mark.write(mark, sync=sync_now)

    def _take_back(self, end: Position, problem: OSError) -> None:
        """Cut back what could not be written. A sync that failed is not tried again: the system may
        have dropped the pages, and would call the second one a success."""
        sentence = f"the log {self.folder} can't be written: {problem.strerror}"
        try:
            if self._open == end.segment and self._handle >= 0:
                os.ftruncate(self._handle, end.offset)
                os.fsync(self._handle)
        except OSError:
            self._broken = f"{sentence}; it must be opened again"
            raise LostEnd(self._broken) from problem
        raise EnvironmentProblem(sentence) from problem

    def _cut(self, end: Position, *, keep: bool) -> None:
        """Remove what is behind the last good group. It was never acknowledged; where something
        else is missing nobody can be sure of that, and it is kept in a folder beside."""
        for first in self.segments():
            path, offset = self.path_of(first), 0
            if first < end.segment:
                continue
            if first == end.segment and end.number:
                offset = end.offset
            rest = path.read_bytes()[offset:]
            if keep and rest:
                make_folder(self.folder / ASIDE)
                number = sum(1 for _ in (self.folder / ASIDE).iterdir())
                replace_file(self.folder / ASIDE / f"{number:06d}-{path.stem}-{offset}", rest)
            if offset:
                os.truncate(path, offset)
                sync(path)
            else:
                path.unlink()
        sync(self.folder)


def _opened(path: Path) -> int:
    """A handle; -1 where the file is not there."""
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return -1
