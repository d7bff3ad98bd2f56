"""The reading side of a log: how far the log is acknowledged, and the changes up to that point.

The end mark of the log of groups says how far any process has acknowledged changes, so a reader
needs no lock. To find the end, a reader reads one small file and calls stat once. Data after the
mark comes from a writer that is still writing, or from a writer that died. After a writer died,
settling.py keeps the data or cuts it off.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

from tidings.store import checkpoint
from tidings.store.groups import START, GroupLog, Mark, end_of
from tidings.store.groups.end_mark import NAME as END
from tidings.store.records import (
    CHANGES,
    LogError,
    Point,
    Record,
    damage_error,
    decode_changes,
    read_groups,
)

NOTHING = Mark(log=0, oldest=1, number=0, segment=1, offset=0, chain=0, value=0)
MOST_POINTS = 256


class Reader:
    """The end of a log, and known positions to start reading from. Any number of threads may use a
    Reader."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._log = GroupLog(folder / CHANGES)
        self._mutex = threading.Lock()
        self._end = NOTHING
        self._points: list[Point] = []  # earlier ends of the log, ordered by version
        self._firsts: dict[int, Point] = {}  # where segments begin

    def end(self) -> Mark:
        """How far the log is acknowledged now; the value of the mark is the latest version."""
        with self._mutex:
            mark, before = read_mark(self._folder, self._log), self._end
            if mark != before:
                self._move(mark, before)
            return mark

    def _move(self, mark: Mark, before: Mark) -> None:
        same = mark.log == before.log
        if mark.value < before.value or (same and mark.number < before.number) or \
                (same and mark.number == before.number and mark.chain != before.chain):  # fmt: skip
            raise LogError(describe_reversal(self._folder, before.value, mark.value))
        if not same:  # the log is new or was repaired
            self._log = GroupLog(self._folder / CHANGES)
            self._points, self._firsts = [], {}
        self._end = mark
        self._points.append(Point(mark.value, end_of(mark)))
        if len(self._points) > MOST_POINTS:  # drop every other point in the older half
            self._points[: MOST_POINTS // 2] = self._points[: MOST_POINTS // 2 : 2]

    def changes(self, after: int, end: Mark) -> Iterator[Record]:
        """The changes after the version `after`, up to and including `end`."""
        if after >= end.value:
            return
        log = GroupLog(self._folder / CHANGES)
        point = self._point_before(after, end, log)
        walk = log.walk(point.at, end_of(end))
        for _, records in read_groups(walk, point.version, self._folder, end.value):
            yield from (record for record in records if record.version > after)

    def oldest(self, end: Mark) -> int:
        """The version after which the log still has all changes."""
        log = GroupLog(self._folder / CHANGES)
        return self._first(end.oldest, end, log).version if end.number else 0

    def _point_before(self, version: int, end: Mark, log: GroupLog) -> Point:
        """The nearest point from which all changes after a version can be read."""
        with self._mutex:
            known = bisect_right(self._points, version, key=lambda point: point.version)
            nearest = self._points[known - 1] if known and self._end.log == end.log else None
        if nearest is not None and nearest.at.segment < end.oldest:
            nearest = None
        if nearest is not None and nearest.version == version:
            return nearest  # the usual case: a reader that follows the log
        there = [first for first in log.segments() if end.oldest <= first <= end.segment]
        if not there or there[0] != end.oldest:
            self._complain(f"{log.path_of(end.oldest)} is missing", end)
        place = bisect_right(there, version, key=lambda first: self._first(first, end, log).version)
        if place:
            start = self._first(there[place - 1], end, log)
            return start if nearest is None or nearest.version < start.version else nearest
        oldest = self._first(there[0], end, log).version
        why = checkpoint.fate_of(version, checkpoint.read(self._folder, end))
        raise LogError(
            f"the log '{self._folder}' no longer has all changes after version {version}, only "
            f"those after {oldest}: version {version} {why}"
        )

    def _first(self, segment: int, end: Mark, log: GroupLog) -> Point:
        """The position at which a segment begins, and the last version before it."""
        found = self._firsts.get(segment)
        if found is None:
            start = log.start_of(segment)
            walk = log.walk(start or START, end_of(end))
            record = next((group.records[0] for group in walk), None)
            if start is None or record is None or walk.damages:
                self._complain(f"{log.path_of(segment)} is corrupt", end)
            found = self._firsts[segment] = Point(decode_changes(record)[0] - 1, start)
        return found

    def _complain(self, problem: str, end: Mark) -> NoReturn:
        read_all(self._folder, end)  # if the state can't be read, the error says where
        raise damage_error(self._folder, problem, end.value, end.value)


def read_mark(folder: Path, log: GroupLog) -> Mark:
    """The end mark; raises LogError if it is missing, or if the log ends before it."""
    mark = log.acknowledged()
    if mark is None:
        if log.segments() or (folder / CHANGES / checkpoint.NAME).exists():
            problem = f"its end mark {log.folder / END} is missing or corrupt"
            raise damage_error(folder, problem, 0, 0)
        return NOTHING
    if mark.number and size_of(log.path_of(mark.segment)) < mark.offset:
        read_all(folder, mark)  # the error says where the log ends
    return mark


def read_all(folder: Path, mark: Mark) -> None:
    """Read a log from its checkpoint to its end; raise LogError at the first damage."""
    base = checkpoint.read(folder, mark)
    walk = GroupLog(folder / CHANGES).walk(base.point.at, end_of(mark))
    for _ in read_groups(walk, base.point.version, folder, mark.value):
        pass


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
