"""The reading side of a channel's log: how far the log is acknowledged, the changes up to that
point, and the state at a version.

The end mark of the log of groups says how far any process has acknowledged entries, so a reader
needs no lock. To find the end, a reader reads one small file and calls stat once. Data after the
mark comes from a writer that is still writing, or from a writer that died. After a writer died,
log_opening.py keeps the data or cuts it off.

Cost: a reader that follows a log reads all groups since it last read the end mark, and the groups
of a rendezvous point also contain notifications.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import msgspec

from tidings.store.change_records import (
    Found,
    Gap,
    LogError,
    damage_error,
    last_version,
    read_groups,
)
from tidings.store.groups import START, EndMark, GroupLog, Position, end_of
from tidings.store.groups.end_mark import NAME as END
from tidings.store.journal import checkpoint, entries as t
from tidings.store.journal.losses import version_in
from tidings.store.journal.state import Counting, JournalState

NOTHING = EndMark(log=0, oldest=1, number=0, segment=1, offset=0, chain=0, value=0)
MOST_POINTS = 256


class Point(msgspec.Struct, frozen=True):
    """The end of a group, and the last version up to that end."""

    version: int
    at: Position


class Reader:
    """The end of a log, and known positions to start reading from. Any number of threads may use a
    Reader."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._log = GroupLog(folder)
        self._mutex = threading.Lock()
        self._end = NOTHING
        self._points: list[Point] = []  # earlier ends of the log, ordered by version
        self._firsts: dict[int, Point | None] = {}  # where segments begin

    def end(self) -> EndMark:
        """How far the log is acknowledged now."""
        with self._mutex:
            mark, before = read_mark(self._folder, self._log), self._end
            if mark != before:
                self._move(mark, before)
            return mark

    def _move(self, mark: EndMark, before: EndMark) -> None:
        now, known = version_in(mark), version_in(before)
        same, before_it = mark.log == before.log, mark.number < before.number
        other = mark.number == before.number and mark.chain != before.chain
        if now < known or (same and now == known and (before_it or other)):
            raise LogError(describe_reversal(self._folder, known, now))
        if not same or before_it or other:  # the log is new, or was repaired
            self._forget_points()
        self._end = mark
        if self._points and self._points[-1].version == version_in(mark):
            self._points.pop()  # of two points with the same version, the later one is kept
        self._points.append(Point(version_in(mark), end_of(mark)))
        if len(self._points) > MOST_POINTS:  # drop every other point in the older half
            self._points[: MOST_POINTS // 2] = self._points[: MOST_POINTS // 2 : 2]

    def forget_points(self) -> None:
        """Read the files again from the start, because a repair may have cut off data that was read
        before."""
        with self._mutex:
            self._forget_points()

    def _forget_points(self) -> None:
        self._log = GroupLog(self._folder)
        self._points, self._firsts = [], {}

    def changes(self, after: int, end: EndMark) -> Iterator[Found]:
        """The changes, adoptions and declarations after the version `after`, up to and including
        `end`."""
        if after >= version_in(end):
            return
        log = GroupLog(self._folder)
        point = self._point_before(after, end, log)
        walk = log.walk(point.at, end_of(end))
        try:
            yield from read_groups(walk, point.version, after, self._folder, version_in(end))
        except Gap as gap:
            self._refuse(after, gap.version, read_checkpoint(self._folder, end))
        except LogError:
            base = read_checkpoint(self._folder, end)
            if walk.end.number >= base.at.number:
                raise
            self._refuse(after, base.version, base)  # a repair has accepted this damage

    def _point_before(self, version: int, end: EndMark, log: GroupLog) -> Point:
        """The nearest point from which all changes after a version can be read."""
        with self._mutex:
            known = bisect_right(self._points, version, key=lambda point: point.version)
            nearest = self._points[known - 1] if known and self._end.log == end.log else None
        if nearest is not None and nearest.at.segment < end.oldest:
            nearest = None
        if nearest is not None and nearest.version == version:
            return nearest  # the usual case: a reader that follows the log
        there = [first for first in log.segments() if end.oldest <= first <= end.segment]
        if end.number and (not there or there[0] != end.oldest):
            self._complain(f"{log.path_of(end.oldest)} is missing", end)
        oldest = version_in(end)
        for segment in reversed(there):
            start = self._first(segment, end, log)
            if start is None:
                continue
            if start.version <= version:
                return start if nearest is None or nearest.version < start.version else nearest
            oldest = start.version
        if nearest is not None:
            return nearest
        self._refuse(version, oldest, read_checkpoint(self._folder, end))

    def _first(self, segment: int, end: EndMark, log: GroupLog) -> Point | None:
        """The position at which a segment begins, and the last version before it; None if the
        version is unknown, because an older release wrote the segment."""
        if segment not in self._firsts:
            start = log.start_of(segment)
            walk = log.walk(start or START, end_of(end))
            record = next((group.records[0] for group in walk), None)
            if start is None or record is None or walk.damages:
                self._complain(f"{log.path_of(segment)} is corrupt", end)
            thing = None if record[:1] == t.NOTIFICATION else t.decode_small(record)
            known = thing.version if isinstance(thing, t.At) else 0 if segment == 1 else None
            self._firsts[segment] = None if known is None else Point(known, start)
        return self._firsts[segment]

    def _refuse(self, version: int, oldest: int, base: JournalState) -> NoReturn:
        raise LogError(
            f"version {version} of the log '{self._folder}' {_fate_of(version, base)}; the log has "
            f"only the changes after version {oldest}"
        )

    def _complain(self, problem: str, end: EndMark) -> NoReturn:
        state_at(self._folder, end)  # raises a more exact error if the state can't be read
        raise damage_error(self._folder, problem, version_in(end), version_in(end))


def state_at(
    folder: Path, mark: EndMark, version: int | None = None, *, counted: bool = False
) -> JournalState:
    """The state at a version, by default at the end of the log; raises LogError if the log has
    dropped that state. The state has counters, publishers and serials only if `counted` is true."""
    state, last = read_checkpoint(folder, mark), version_in(mark)
    upto = last if version is None else version
    if upto < state.version:
        raise LogError(
            f"the state at version {upto} {_fate_of(upto, state)}, expected version "
            f"{state.version} or later"
        )
    log = GroupLog(folder)
    walk, counting = log.walk(state.at, end_of(mark)), Counting(state)
    for group in walk:
        if walk.damages:
            break
        found = [one for one in group.records if one is not None and
                 (counted or one[:1] != t.NOTIFICATION)]  # fmt: skip
        if upto < last and last_version(found) > upto:
            for record in found:
                if record[:1] != t.NOTIFICATION:
                    counting.apply_upto(t.decode_small(record), upto)
            break
        counting.apply_all(found)
        state.at = group.end
    counting.finish()
    if walk.damages:
        raise damage_error(folder, walk.damages[0], state.version, last)
    state.log = mark.log
    return state


def read_checkpoint(folder: Path, mark: EndMark) -> JournalState:
    """The state in the checkpoint of a log that ends at a mark; raises LogError if it is
    damaged."""
    last = version_in(mark)
    try:
        state = checkpoint.read(folder, mark if mark.log else None)
    except checkpoint.Damaged as problem:
        raise damage_error(folder, str(problem), 0, last) from None
    if state.at.number > mark.number:
        newer = (
            f"{folder / checkpoint.NAME} is newer than the log: found version {state.version:,}, "
            f"expected at most {last:,}"
        )
        raise damage_error(folder, newer, 0, last)
    return state


def _fate_of(version: int, base: JournalState) -> str:
    """Why a version that is older than the checkpoint is not available."""
    if any(first <= version <= last for first, last in base.lost):
        return "was lost when the log was repaired"
    return "was dropped"


def read_mark(folder: Path, log: GroupLog) -> EndMark:
    """The end mark; raises LogError if it is missing, or if the log ends before it."""
    mark = log.read_mark()
    if mark is None:
        if log.segments() or (folder / checkpoint.NAME).exists():
            raise damage_error(folder, f"its end mark {folder / END} is missing or corrupt", 0, 0)
        return NOTHING
    if mark.number and size_of(log.path_of(mark.segment)) < mark.offset:
        state_at(folder, mark)  # raises an error that says where the log ends
    return mark


def describe_reversal(folder: Path, before: int, now: int) -> str:
    """A sentence about a log that was replaced by an older or a different one."""
    return (
        f"the log '{folder}' was replaced by another one: it was at version {before}, and is now "
        f"at version {now}; if it was restored on purpose, open it again"
    )


def size_of(path: Path) -> int:
    """The size of a file in bytes; 0 if there is none."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
