"""The commits of an outbox: a log of groups, one group for each batch, each chained to the one
before.

    batch       0     1     2     3
    group       1  <- 2  <- 3  <- 4        end: 4 were acknowledged

So a commit that was altered, left out, swapped or cut off is noticed (tidings.store.groups). A
commit names the files of its batch, with their sizes and digests.

Whoever writes holds the lock of the outbox; any number read, up to what was acknowledged. Cost of a
commit: one write and one sync, about 1 kB; of a start, all commits are read, or where these are
over WHOLE bytes, those since the counters were kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from tidings.model import EnvironmentProblem, TidingsError
from tidings.store.groups import START, GroupLog, Place, Position, Walk

WHOLE = 16 << 20  # bytes of commits that are read at every start


class DataFile(msgspec.Struct, frozen=True, array_like=True):
    """A file of a batch."""

    path: str  # from the folder of the outbox
    rows: int
    size: int
    digest: str  # SHA-256; empty where nobody had computed one before it was asked for


class Commit(msgspec.Struct, frozen=True):
    """What a batch came to."""

    batch: int
    attempt: str
    version: int
    micros: int
    rows: int  # notifications that were read, refused ones aside
    matched: int  # notifications that matched something
    told: int  # pairs of notification and subscription
    refused: int
    counters: dict[int, int]  # of the nodes that were numbered: the last number of each
    files: list[DataFile] = []
    ended: int = 0  # when it was committed, in microseconds since 1970
    offsets: str = ""  # as in its pin


class DamagedOutbox(TidingsError):
    """An outbox that is not as it was written. Nothing of it is touched."""


class Commits:
    """The commits of one outbox."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._log = GroupLog(folder)
        self._writes = False
        self._first = 0  # the batch of the first place
        self._places: list[Place] = []
        self._end = START
        self._walk: Walk | None = None  # that found the end, and was not taken yet

    # -- reading -------------------------------------------------------------------------------

    def __len__(self) -> int:
        """How many batches are there."""
        self._refresh()
        return self._first + len(self._places)

    def read(self, batch: int) -> Commit | None:
        """The commit of a batch; None when it is not there."""
        if not 0 <= batch < self._first + len(self._places):
            self._refresh()
        if not 0 <= batch < self._first + len(self._places):
            return None
        if batch < self._first:  # the log was not read from its beginning
            self._first, self._places, self._end, after = 0, [], START, self._end
            self._follow(after)
        (record,) = self._log.read([self._places[batch - self._first]])
        if record is None:
            raise self.damage_error(f"commit {batch} was altered")
        return decode_commit(record)

    def each(self, first: int = 0) -> Iterator[Commit]:
        """All commits from a batch on, in order."""
        for batch in range(first, len(self)):
            commit = self.read(batch)
            if commit is not None:
                yield commit

    def _refresh(self) -> None:
        mark = None if self._writes else self._log.acknowledged()
        if mark is None and not self._writes and self.has_old_format():
            raise TidingsError(
                f"the outbox {self.folder.parent.parent} was written by a version before this one; "
                f"its pipeline rewrites it when it starts"
            )
        if mark is not None and mark.number > self._end.number:
            self._follow(Position(mark.number, mark.segment, mark.offset, mark.chain))

    def _follow(self, upto: Position) -> None:
        walk = self._log.walk(self._end, upto)
        for group in walk:
            self._places += group.places[:1]
        if walk.damages:
            raise self.damage_error(walk.damages[0])
        self._end = walk.end

    # -- writing -------------------------------------------------------------------------------

    def begin(self, kept: Position = START) -> list[Commit]:
        """Go on writing behind the last commit; DamagedOutbox where something is missing. The
        commits after the position that was kept, or all where they are few."""
        self._log.close()
        self._log = log = GroupLog(self.folder)
        sizes = {first: log.path_of(first).stat().st_size for first in log.segments()}
        losses = list[str]()
        if sum(sizes.values()) <= WHOLE:
            kept = START
        elif kept.number and sizes.get(kept.segment, 0) < kept.offset:
            losses.append(f"{log.path_of(kept.segment)} was cut short")
        walk, found = log.walk(kept), list[Commit]()
        self._first, self._places = kept.number, []
        for group in walk:
            record = group.records[0] if len(group.records) == 1 else None
            commit = None if record is None else decode_commit(record)
            if commit is not None and commit.batch == group.number - 1:
                found.append(commit)
            elif not walk.damages:
                losses.append(f"group {group.number} of {self.folder} is not a commit")
            self._places += group.places[:1]
        losses += log.losses(walk)
        if losses:
            raise self.damage_error(losses[0])
        self._end, self._writes, self._walk = walk.end, True, walk
        return found

    def append(self, commit: Commit) -> None:
        """Write a commit; it is on the disk when this returns. TidingsError where it is not the
        next: one that failed may be there, though it was not acknowledged."""
        if not self._writes:
            self.begin()
        expected = self._first + len(self._places)
        if commit.batch != expected:
            raise TidingsError(
                f"found batch {commit.batch}, expected {expected}, the next of the outbox "
                f"{self.folder.parent.parent}"
            )
        try:
            if self._walk is not None:  # until now nothing was touched
                self._log.take_end(self._walk)
                self._walk = None
            group = self._log.append([msgspec.json.encode(commit)], value=commit.batch)
        except EnvironmentProblem:
            self._writes = False  # what is on the disk is read again before the next
            raise
        self._places += group.places
        self._end = group.end

    @property
    def end(self) -> Position:
        """Behind the last commit that is known here."""
        return self._end

    def has_old_format(self) -> bool:
        """Is there no log, but files of the format before: one for each commit?"""
        there = self._log.segments() or self._log.acknowledged() is not None
        return not there and any(self.folder.glob("[0-9]*.json"))

    def damage_error(self, problem: str) -> DamagedOutbox:
        """What is said of an outbox that can't be gone on with."""
        return DamagedOutbox(
            f"the outbox {self.folder.parent.parent} is damaged: {problem}; nothing of it was "
            f"touched: put it back with its checkpoint from a copy, or begin anew with both empty; "
            f"`tidings pipeline verify` lists what is wrong"
        )

    def problems(self) -> list[str]:
        """Look at all of the log that was acknowledged; a sentence for each thing that is wrong."""
        log = GroupLog(self.folder)
        mark = log.acknowledged()
        if mark is None:
            return [f"the end mark in {self.folder} is missing"] if log.segments() else []
        walk = log.walk(START, Position(mark.number, mark.segment, mark.offset, mark.chain))
        for _ in walk:
            pass
        return walk.damages

    def close(self) -> None:
        self._log.close()
        self._writes = False


def decode_commit(record: bytes) -> Commit | None:
    try:
        return msgspec.json.decode(record, type=Commit)
    except msgspec.DecodeError:
        return None
