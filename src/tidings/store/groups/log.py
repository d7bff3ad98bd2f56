"""A log of groups in a folder. A group is stored completely or not at all. If acknowledged data is
changed, swapped or cut off, readers notice it.

    00000000000000000001.log    groups 1 to 811
    00000000000000000812.log    groups from 812 on; the last segment grows
    end                         how far the log was acknowledged; see end_mark.py

One process at a time writes, under a lock that the caller holds; any number of processes may read.
The log does not interpret records.

    log = GroupLog(folder)
    walk = log.walk()                         or from a position that the caller saved
    for group in walk: ...                    group.records: bytes, or None for a corrupt record
    loss = log.take_end(walk)                 sentences about missing data; usually []
    group = log.append([b"...", b"..."])      on the disk and marked when this returns
    log.read(group.places[:1])                reads records again; None for a corrupt record

A reader calls `read_mark()` and reads up to that position: `walk(after, upto)`.

Bytes after the last complete group, without a valid group after them, were left by a writer that
died. Bytes left by a dead writer were never acknowledged, and `take_end` cuts them off. All other
damage is listed in `walk.damages`. A walk never raises an error for damage: the caller decides
whether to continue.

Cost: a group takes one write, one sync and 40 bytes. A record takes 8 bytes in addition to its
data, and a checksum that costs about 0.3 µs per kilobyte. A walk reads one segment at a time into
memory.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from tidings.files import (
    make_durable_folder,
    open_private,
    replace_file,
    sync,
    sync_handle,
    write_at,
)
from tidings.model import EnvironmentProblem
from tidings.store.groups import layout
from tidings.store.groups.end_mark import EndMark, EndMarkFile
from tidings.store.groups.walk import START, Group, Position, RecordPlace, Walk

SEGMENT_BYTES = 32 << 20
DIGITS = 20
ASIDE = "aside"


class LostEnd(EnvironmentProblem):
    """It is not certain where the log ends, because a failed write could not be undone or another
    process changed the log. The log must be opened again."""


class GroupLog:
    """A log of groups; the top of the module shows its use."""

    def __init__(self, folder: str | Path, *, segment_bytes: int = SEGMENT_BYTES) -> None:
        self.folder = Path(folder)
        self.segment_bytes = segment_bytes
        self.id = 0  # distinguishes the segments of this log from those of others
        self._mark = EndMarkFile(self.folder)
        self._end: Position | None = None
        self._handle = -1
        self._open = 0  # the segment that the handle belongs to
        self._broken = ""
        self._fresh = False  # whether the next group begins a segment
        self._rest = False  # whether data after the end must be moved aside before the next group
        self._oldest = 0  # the oldest segment that is not dropped
        self.marked: EndMark | None = None  # the mark last read or written by this object

    # -- reading -------------------------------------------------------------------------------

    def segments(self) -> list[int]:
        """The existing segments, as the numbers of their first groups."""
        try:
            stems = [path.stem for path in self.folder.iterdir() if path.suffix == ".log"]
        except FileNotFoundError:
            return []
        return sorted(int(one) for one in stems if len(one) == DIGITS and one.isdecimal())

    def path_of(self, segment: int) -> Path:
        return self.folder / f"{segment:0{DIGITS}}.log"

    def read_mark(self) -> EndMark | None:
        """How far the log has been acknowledged by any process; None if there is no mark."""
        return self._mark.read()

    def walk(self, after: Position = START, upto: Position | None = None) -> Walk:
        """Walk through the groups after a position, to the end or up to another position."""
        if not self.id:
            self.id = self._known_id()
        return Walk(self, after, upto)

    def start_of(self, segment: int) -> Position | None:
        """The position at which a segment begins; None if it is gone or its head is corrupt."""
        with contextlib.suppress(FileNotFoundError), self.path_of(segment).open("rb") as file:
            head = layout.decode_segment_head(file.read(layout.SEGMENT_HEAD))
            if head is not None and head.first == segment:
                return Position(segment - 1, segment, 0, head.chain)
        return None

    def has_more(self, end: Position) -> bool:
        """Whether the log now ends at a position other than `end`. Cost: two calls to stat."""
        following = end.number + 1
        try:
            size = self.path_of(end.segment).stat().st_size
        except FileNotFoundError:
            size = 0
        is_over = following != end.segment and self.path_of(following).exists()
        return size != end.offset or is_over

    def _known_id(self) -> int:
        """The id of the log, from the mark, or else from the first readable segment; 0 if there is
        neither."""
        mark = self._mark.read()
        if mark is not None:
            return mark.log
        for segment in self.segments():
            with contextlib.suppress(FileNotFoundError), self.path_of(segment).open("rb") as file:
                head = layout.decode_segment_head(file.read(layout.SEGMENT_HEAD))
                if head is not None:
                    return head.log
        return 0

    def read(self, places: Iterable[RecordPlace]) -> list[bytes | None]:
        """The records at these places; None for a record that is corrupt or gone."""
        found: list[bytes | None] = []
        handle, opened = -1, 0
        try:
            for place in places:
                if place.segment != opened:
                    if handle >= 0:
                        os.close(handle)
                    handle, opened = _open_existing(self.path_of(place.segment)), place.segment
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

    # -- writing, under the caller's lock ------------------------------------------------------

    @property
    def end(self) -> Position:
        """The position for the next group; known after `take_end`."""
        if self._end is None:
            raise EnvironmentProblem(
                f"the log {self.folder} was not read to its end; expected a call to `take_end`"
            )
        return self._end

    @property
    def begins_segment(self) -> bool:
        """Whether the next group begins a new segment; known after `take_end`."""
        end = self.end
        return self._fresh or not end.offset or end.offset >= self.segment_bytes

    def losses(self, walk: Walk) -> list[str]:
        """Sentences about missing data that was acknowledged, found by a walk to the end of the
        log; empty if nothing is missing."""
        assert walk.finished, "losses are known only after a complete walk"
        losses = list(walk.damages)
        mark, end = self._mark.read(), walk.end
        if mark is None and end.number:
            losses.append(f"the end mark of the log {self.folder} is missing or corrupt")
        elif mark is not None and mark.number > end.number:
            losses.append(
                f"the log {self.folder} ends with group {end.number}, expected group "
                f"{mark.number}, which was acknowledged"
            )
        return losses

    def take_end(self, walk: Walk, value: int | None = None) -> list[str]:
        """Prepare to write at the end of a walk, and return `losses`.

        Torn bytes are cut off, and the end is marked; if the walk found more groups than the mark
        records, `value` is stored in the mark. After a loss, nothing is changed until the next
        group is appended; that group should record the loss. Until that group is appended, every
        process that opens the log finds the loss again. A new log gets a mark before its first
        group, so even a writer that dies never leaves a log without a mark."""
        losses = self.losses(walk)
        mark, end = self._mark.read(), walk.end
        make_durable_folder(self.folder)
        if walk.torn and not losses:
            self._cut(end, keep=False)
        is_marked = mark is not None and mark.number == end.number and not losses
        if not is_marked and self.path_of(end.segment).exists():
            sync(self.path_of(end.segment))
            sync(self.folder)
        self._close_segment()
        self._broken, self._oldest = "", 0 if mark is None or losses else mark.oldest
        self._end, self._fresh, self._rest = end, bool(losses), bool(losses)
        self.id = self.id or int.from_bytes(os.urandom(8), "little") | 1
        self.marked = mark
        if not is_marked and not losses:
            known = 0 if mark is None else mark.value
            self._write_mark(end, known if value is None else value, sync_now=True)
        return losses

    def append(self, records: Sequence[bytes], value: int = 0) -> Group:
        """Append a group; it is on the disk and marked when this returns. `value` is stored in the
        mark. If the call fails, nothing was appended, except if the error is `LostEnd`: then it is
        not certain whether anything was."""
        places = self.append_packed(records, value)
        return Group(self.end.number, list(records), places, self.end)

    def append_packed(
        self, records: Sequence[bytes | layout.Packed], value: int = 0
    ) -> list[RecordPlace]:
        """Like `append`, but some of the records may be packed together. Return the place of each
        record; records that are packed together have one place."""
        if self._broken:
            raise LostEnd(self._broken)
        end = self.end
        try:
            if self._rest:
                self._cut(end, keep=True)
                self._rest = False
            if self.begins_segment:
                end = self._begin_segment(end)
            data, chain = layout.encode_group(self.id, end.number + 1, end.chain, records)
            handle = self._segment_handle(end.segment)
            self._need_unchanged(handle, end)
            write_at(handle, data, end.offset)
            sync_handle(handle, data_only=True)
            after = Position(end.number + 1, end.segment, end.offset + len(data), chain)
            self._write_mark(after, value)
        except OSError as problem:
            self._take_back(end, problem)
        self._end, self._fresh = after, False
        places, start = [], end.offset + layout.GROUP_HEAD
        for record in records:
            start += 0 if isinstance(record, layout.Packed) else layout.RECORD_HEAD
            places.append(RecordPlace(end.segment, start, start + len(record)))
            start += len(record)
        return places

    def take_back(self, end: Position, value: int = 0) -> None:
        """Remove the groups after a position, which were not acknowledged; `value` is stored in the
        mark. Raise `LostEnd` if that fails."""
        if end == self._end:
            return
        try:
            self._close_segment()
            # the mark is written first, because it must never be ahead of the log
            self._write_mark(end, value, sync_now=True)
            self._cut(end, keep=False)
        except OSError as problem:
            self._broken = f"the log {self.folder} can't be written: {problem}; open it again"
            raise LostEnd(self._broken) from problem
        self._end, self._fresh = end, True

    def drop_before(self, segment: int) -> None:
        """Remove the segments before the given one; the last segment is always kept."""
        there = self.segments()
        gone = [first for first in there[:-1] if first < segment]
        mark = self._mark.read()
        if gone and mark is not None:
            # write the mark first: a missing segment counts as damage, unless the mark says that
            # it was dropped
            self._oldest = there[len(gone)]
            self.marked = msgspec.structs.replace(mark, oldest=self._oldest)
            self._mark.write(self.marked, sync=True)
            for first in gone:
                self.path_of(first).unlink(missing_ok=True)
            sync(self.folder)

    def begin_segment(self) -> None:
        """Begin a new segment with the next group."""
        self._fresh = True

    def close(self, *, sync: bool = True) -> None:
        """Close the files; they are reopened when needed. If `sync` is set, sync the mark first."""
        self._close_segment()
        self._mark.close(sync=sync)

    # -- internals -----------------------------------------------------------------------------

    def _need_unchanged(self, handle: int, end: Position) -> None:
        """Raise LostEnd if the files were replaced while they were open."""
        mark, found = self._mark.read(), os.fstat(handle)
        if found.st_size != end.offset or not found.st_nlink or mark != self.marked:
            self._broken = f"the log {self.folder} was changed by another process; open it again"
            raise LostEnd(self._broken)

    def _begin_segment(self, end: Position) -> Position:
        first = end.number + 1
        head = layout.encode_segment_head(layout.SegmentHead(self.id, first, end.chain))
        path = self.path_of(first)
        self._close_segment()
        handle = open_private(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        self._handle, self._open = handle, first
        write_at(handle, head, 0)
        sync_handle(handle)
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
        mark = EndMark(self.id, self._oldest, end.number, end.segment, end.offset, end.chain, value)
        self._mark.write(mark, sync=sync_now)
        self.marked = mark

    def _take_back(self, end: Position, problem: OSError) -> None:
        """Undo a failed write. A failed sync is not repeated: the system may have dropped the
        pages, and a second sync would report success."""
        sentence = f"the log {self.folder} can't be written: {problem.strerror}"
        try:
            if self._open == end.segment and self._handle >= 0:
                os.ftruncate(self._handle, end.offset)
                sync_handle(self._handle)
            mark = self._mark.read()
            if self.marked is not None and mark is not None and mark.number > end.number:
                # the failed write had already moved the mark
                self._mark.write(self.marked, sync=True)
        except OSError:
            self._broken = f"{sentence}; it must be opened again"
            raise LostEnd(self._broken) from problem
        raise EnvironmentProblem(sentence) from problem

    def _cut(self, end: Position, *, keep: bool) -> None:
        """Remove the data after the last good group. Usually this data was never acknowledged.
        After a loss this is not certain, so if `keep` is set, the data is saved in a folder next to
        the log."""
        # the last segment is removed first, so that there is never a gap
        for first in reversed(self.segments()):
            path, offset = self.path_of(first), 0
            if first < end.segment:
                continue
            if first == end.segment and end.number:
                offset = end.offset
            rest = path.read_bytes()[offset:]
            if keep and rest:
                make_durable_folder(self.folder / ASIDE)
                number = sum(1 for _ in (self.folder / ASIDE).iterdir())
                replace_file(self.folder / ASIDE / f"{number:06d}-{path.stem}-{offset}", rest)
            if offset:
                os.truncate(path, offset)
                sync(path)
            else:
                path.unlink()
        sync(self.folder)


def _open_existing(path: Path) -> int:
    """Open a file and return its handle; -1 if there is no file."""
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return -1
