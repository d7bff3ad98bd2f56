"""The commits of an outbox and the numbers of their nodes, in one log: a group for each commit, and
a group for its numbers.

    batch       0       0         1       1         2
    group       1 <---- 2 <------ 3 <---- 4 <------ 5        end mark: 5 groups are acknowledged
                commit  numbers   commit  numbers   commit

The chain reveals a commit that was altered, removed, swapped or cut off (tidings.store.groups). A
commit names the files of its batch, with their sizes and digests, and counts the nodes in them. The
numbers follow when the channel has accepted the batch: see store/numbers. A batch without rows gets
no numbers. A batch of a pipeline whose channel has a rendezvous point gets none either, because the
rendezvous point numbers the rows itself. Older releases numbered the rows themselves, before the
commit.

Readers get a batch with its numbers. Only the last commit can lack numbers, because the next batch
begins after the numbers are written.

The writer holds the lock of the outbox. Any number of processes may read, up to the acknowledged
end. Cost of a batch: two writes and two syncs, about 1 kB. A start reads all commits if they have
at most WHOLE bytes; otherwise, only those that were written after the counters were last saved.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from tidings.model import EnvironmentProblem, TidingsError
from tidings.store.groups import START, Group, GroupLog, Position, RecordPlace, Walk
from tidings.store.numbers import pack_counts, unpack_counts

WHOLE = 16 << 20  # a log of up to this many bytes is read in full at every start
NUMBERS = b"N"  # begins a record of numbers; a commit begins with a brace


class DataFile(msgspec.Struct, frozen=True, array_like=True):
    """A file of a batch."""

    path: str  # relative to the folder of the outbox
    rows: int
    size: int
    digest: str  # SHA-256; empty for files written before digests were introduced


class PartitionCounts(msgspec.Struct, frozen=True, array_like=True):
    """The matched rows of a partition. The files of a batch are in the order of partitions."""

    files: int
    rows: int
    counts: bytes  # how often each node occurs: see store/numbers


class Commit(msgspec.Struct, frozen=True):
    """The result of a batch."""

    batch: int
    attempt: str
    version: int
    micros: int
    rows: int  # the number of notifications read, without refused ones
    matched: int  # notifications that matched a subscription
    told: int  # pairs of notification and subscription
    refused: int
    counters: dict[int, int] = {}  # only from older releases: last numbers by node
    files: list[DataFile] = []
    ended: int = 0  # the time of the commit, in microseconds since 1970
    offsets: str = ""  # the same digest as in the pin of the batch
    extra_rows: int = 0  # notifications that were read and have undeclared fields
    extra_fields: int = 0
    life: int = 0  # the life of the channel, as in the pin of the batch
    before: int = 0  # the number of matched notifications in all earlier batches
    partitions: list[PartitionCounts] = []  # partitions with matched rows

    @property
    def needs_numbers(self) -> bool:
        """Whether the batch needs numbers to be complete."""
        return bool(self.partitions) and not self.life

    def count_nodes(self) -> dict[int, int]:
        """How often each node occurs in the batch; empty for batches of older releases."""
        found: dict[int, int] = {}
        for one in self.partitions:
            for node, count in unpack_counts(one.counts).items():
                found[node] = found.get(node, 0) + count
        return found


class Numbers(msgspec.Struct, frozen=True, array_like=True):
    """The last number of each node before a batch."""

    batch: int
    before: bytes


class DamagedOutbox(TidingsError):
    """An outbox is damaged: something in it was altered or removed. Nothing in a damaged outbox is
    changed."""


class Commits:
    """The commits of one outbox."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._log = GroupLog(folder)
        self._writes = False
        self._first = 0  # the batch of the first commit in memory
        self._places: list[RecordPlace] = []
        self._numbers: dict[int, RecordPlace] = {}  # by batch, in order
        self._end = START
        self._walk: Walk | None = None  # set from `begin` until the first append

    # -- reading -------------------------------------------------------------------------------

    def __len__(self) -> int:
        """The number of committed batches."""
        self._refresh()
        return self._first + len(self._places)

    def read(self, batch: int) -> Commit | None:
        """The commit of a batch; None if there is none."""
        if not 0 <= batch < self._first + len(self._places):
            self._refresh()
        if not 0 <= batch < self._first + len(self._places):
            return None
        self._need_since(batch)
        (record,) = self._log.read([self._places[batch - self._first]])
        if record is None:
            raise self.damage_error(f"commit {batch} was altered")
        return decode_commit(record)

    def read_numbers(self, batch: int) -> dict[int, int] | None:
        """The last number of each node before a batch; None if the log has no numbers of the
        batch."""
        if batch not in self._numbers:
            self._refresh()
            self._need_since(batch)
        if batch not in self._numbers:
            return None
        (record,) = self._log.read([self._numbers[batch]])
        if record is None:
            raise self.damage_error(f"the numbers of batch {batch} were altered")
        return unpack_counts(decode_numbers(record).before)

    def last_numbered(self) -> int | None:
        """The last batch whose numbers the log has; None if there is none."""
        if not self._numbers:
            self._refresh()
            self._need_since(0)
        return next(reversed(self._numbers), None)

    def count_readable(self) -> int:
        """The number of committed batches that have their numbers, or need none."""
        last = self.read(len(self) - 1)
        waits = last is not None and last.needs_numbers and last.batch not in self._numbers
        if waits:  # the numbers may have been written after the commit was read
            self._refresh()
            waits = last is not None and last.batch not in self._numbers
        return 0 if last is None else last.batch + 1 - waits

    def _need_since(self, batch: int) -> None:
        """Read the whole log if a batch is before the part that was read so far."""
        if batch < self._first:
            self._first, self._places, self._end, after = 0, [], START, self._end
            self._follow(after)

    def each(self, first: int = 0) -> Iterator[Commit]:
        """All commits from a batch on, in order."""
        for batch in range(first, len(self)):
            commit = self.read(batch)
            if commit is not None:
                yield commit

    def _refresh(self) -> None:
        mark = None if self._writes else self._log.read_mark()
        if mark is None and not self._writes and self.has_old_format():
            raise TidingsError(
                f"the outbox {self.folder.parent.parent} was written by an older version; "
                f"start its pipeline, which converts it to the current format"
            )
        if mark is not None and mark.number > self._end.number:
            self._follow(Position(mark.number, mark.segment, mark.offset, mark.chain))

    def _follow(self, upto: Position) -> None:
        walk = self._log.walk(self._end, upto)
        for group in walk:
            self._index(group)
        if walk.damages:
            raise self.damage_error(walk.damages[0])
        self._end = walk.end

    def _index(self, group: Group) -> None:
        record = group.records[0]
        if record is not None and record[:1] == NUMBERS:
            self._numbers[decode_numbers(record).batch] = group.places[0]
        else:
            self._places += group.places[:1]

    # -- writing -------------------------------------------------------------------------------

    def begin(self, kept: Position = START, done: int = 0) -> list[Commit]:
        """Prepare to write after the last commit; raise DamagedOutbox if a commit is missing.
        Return the commits after the position `kept`; `done` says how many batches were committed
        before that position. If there are few commits, return all of them."""
        self._log.close()
        self._log = log = GroupLog(self.folder)
        sizes = {first: log.path_of(first).stat().st_size for first in log.segments()}
        losses = list[str]()
        if sum(sizes.values()) <= WHOLE:
            kept, done = START, 0
        elif kept.number and sizes.get(kept.segment, 0) < kept.offset:
            losses.append(f"{log.path_of(kept.segment)} was cut short")
        walk, found = log.walk(kept), list[Commit]()
        self._first, self._places, self._numbers = done, [], {}
        for group in walk:
            record = group.records[0] if len(group.records) == 1 else None
            if record is None or record[:1] != NUMBERS:
                commit = None if record is None else decode_commit(record)
                if commit is not None and commit.batch == done + len(found):
                    found.append(commit)
                elif not walk.damages:
                    losses.append(f"group {group.number} of {self.folder} is not a commit")
            self._index(group)
        losses += log.losses(walk)
        if losses:
            raise self.damage_error(losses[0])
        self._end, self._writes, self._walk = walk.end, True, walk
        return found

    def append(self, commit: Commit) -> None:
        """Write a commit; it is on disk when this returns. Raise TidingsError if the commit is not
        for the next batch. A repeated batch can already be in the log: its append may have reached
        the disk although it failed and was not acknowledged."""
        if not self._writes:
            self.begin()
        expected = self._first + len(self._places)
        if commit.batch != expected:
            raise TidingsError(
                f"found batch {commit.batch}, expected batch {expected}, the next one of the "
                f"outbox {self.folder.parent.parent}"
            )
        self._append(msgspec.json.encode(commit), commit.batch)

    def append_numbers(self, batch: int, before: Mapping[int, int]) -> None:
        """Write the numbers of a committed batch; they are on disk when this returns."""
        if not self._writes:
            self.begin()
        if self.read(batch) is None or self.read_numbers(batch) is not None:
            raise TidingsError(
                f"can't number batch {batch} of the outbox {self.folder.parent.parent}: the batch "
                "is not committed, or already has numbers"
            )
        self._append(NUMBERS + msgspec.msgpack.encode(Numbers(batch, pack_counts(before))), batch)

    def _append(self, record: bytes, batch: int) -> None:
        try:
            if self._walk is not None:  # this is the first append since `begin`
                self._log.take_end(self._walk)
                self._walk = None
            group = self._log.append([record], value=batch)
        except EnvironmentProblem:
            self._writes = False  # read the disk again before the next append
            raise
        self._index(group)
        self._end = group.end

    @property
    def end(self) -> Position:
        """The position after the last known commit."""
        return self._end

    def has_old_format(self) -> bool:
        """Whether the commits are in the old format: one file per commit instead of a log."""
        there = self._log.segments() or self._log.read_mark() is not None
        return not there and any(self.folder.glob("[0-9]*.json"))

    def damage_error(self, problem: str) -> DamagedOutbox:
        """The error for an outbox that can't be continued."""
        return DamagedOutbox(
            f"the outbox {self.folder.parent.parent} is damaged: {problem}; nothing in it was "
            f"changed; restore it and its checkpoint from a backup, or start over with both empty; "
            f"`tidings pipeline verify` lists all problems"
        )

    def problems(self) -> list[str]:
        """Check the whole acknowledged log; return one sentence per problem."""
        log = GroupLog(self.folder)
        mark = log.read_mark()
        if mark is None:
            return [f"the end mark in {self.folder} is missing"] if log.segments() else []
        walk = log.walk(START, Position(mark.number, mark.segment, mark.offset, mark.chain))
        for _ in walk:
            pass
        return walk.damages

    def close(self) -> None:
        self._log.close()
        self._writes = False


def decode_numbers(record: bytes) -> Numbers:
    return msgspec.msgpack.decode(record[1:], type=Numbers)


def decode_commit(record: bytes) -> Commit | None:
    try:
        return msgspec.json.decode(record, type=Commit)
    except msgspec.DecodeError:
        return None
