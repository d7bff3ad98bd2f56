"""Where the log ends: what was acknowledged up to now, by whichever process.

A reader that looks while a writer is at work sees groups that are not on the disk yet, and might be
taken back. It tells them apart without asking the writer:

    ... group | group | group | grou        there are bytes behind a group: it is acknowledged
    ... group | group | group |             of the last one nobody can tell; so the reader takes
                                            the lock, shared, and syncs it itself

While a writer has the lock the reader waits until it lets go, or has begun its next group; a writer
that never pauses can't keep readers from seeing what it did. When nothing was added, a look costs
two calls of stat.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path

import msgspec

from tidings.store.disk import sync_end
from tidings.store.locks import shared_at_once
from tidings.store.records import LogError
from tidings.store.segments import Position, damage, firsts, read, segment_path, start_of

PATIENCE = 5.0  # seconds that a look waits for a writer; then it shows what is certain
PAUSE = 0.001
MOST_MARKS = 256


class Sight(msgspec.Struct, frozen=True):
    """What one look saw."""

    certain: Position  # the last group that is acknowledged for certain
    complete: Position  # the last complete group
    unfinished: bool  # whether there are bytes behind that


class Tail:
    """The end of a log, moved on by each look. For all threads."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._mutex = threading.Lock()
        self._end: Position | None = None
        self._marks: list[Position] = []

    def end(self) -> Position:
        """The end of what is acknowledged now."""
        with self._mutex:
            if self._end is None or not self._is_at(self._end):
                self._look()
            return self._end or start_of(1)

    def marks(self) -> list[Position]:
        """Ends that were seen before, in order of versions: places to begin reading at."""
        with self._mutex:
            return self._marks.copy()

    def move(self, end: Position) -> None:
        """Take an end that is known to be acknowledged."""
        with self._mutex:
            self._move(end)

    def _move(self, end: Position) -> None:
        if self._end is not None and end.version < self._end.version:
            return
        if self._end is None or end.version > self._end.version:
            self._marks.append(end)
            if len(self._marks) > MOST_MARKS:  # keep the newest and every second of the others
                self._marks[: MOST_MARKS // 2] = self._marks[: MOST_MARKS // 2 : 2]
        self._end = end

    def _is_at(self, end: Position) -> bool:
        """Whether nothing was added behind the end."""
        try:
            size = segment_path(self._folder, end.first).stat().st_size
        except FileNotFoundError:
            return False
        following = end.version + 1
        at_end = following == end.first or not segment_path(self._folder, following).exists()
        return size == end.offset and at_end

    def _look(self) -> None:
        limit = time.monotonic() + PATIENCE
        wanted: int | None = None  # a group that may have been acknowledged before this look
        while True:
            # Without the lock a segment may be dropped, or an unfinished group be cut off and
            # written over, while it is read. So a complaint counts only under the lock.
            try:
                sight = look(self._folder, self._end)
                self._move(sight.certain)
                wanted = sight.complete.version if wanted is None else wanted
            except (LogError, FileNotFoundError):
                pass
            if wanted is not None and self._end is not None and self._end.version >= wanted:
                return
            with shared_at_once(self._folder) as alone:
                if alone:
                    sight = look(self._folder, self._end)
                    sync_end(self._folder, sight.complete)
                    self._move(sight.complete)
                    return
            if time.monotonic() > limit:
                return
            time.sleep(PAUSE)


def look(folder: Path, end: Position | None) -> Sight:
    """Read on from an end, or from the last segment, to the end that the files have now."""
    if end is None or not segment_path(folder, end.first).exists():
        there = firsts(folder)
        if not there:
            return Sight(start_of(1), start_of(1), unfinished=False)
        end = start_of(there[-1])
    certain = complete = end
    while True:
        for record, offset in read(folder, complete):
            certain = complete
            if not record.left:
                complete = Position(record.version, complete.first, offset)
        following = complete.version + 1
        path = segment_path(folder, complete.first)
        over = following != complete.first and segment_path(folder, following).exists()
        # In this order: a writer cuts off what is unfinished before it begins a segment.
        unfinished = path.stat().st_size > complete.offset
        if not over:
            return Sight(complete if unfinished else certain, complete, unfinished)
        if unfinished:
            problem = "is unfinished and the next segment follows"
            raise damage(path, complete.first, following, problem)
        certain = complete = start_of(following)
