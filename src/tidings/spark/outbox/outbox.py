"""The outbox: the matched notifications of a pipeline, on disk, each batch exactly once.

    data/00000042-ATTEMPT/grain=.../      matched notifications of a batch, Parquet
    dead/00000042-ATTEMPT/                refused rows, with the reason
    _tidings/stream                       the id of the stream that writes here
    _tidings/pins/00000042.json           inputs of a batch: version of the subscriptions, time
    _tidings/commits/                     a log of commits: results and files of each batch, and
                                          then its numbers; see commits.py
    _tidings/counters/00000100.json       how often each node occurred, saved every 100 batches
    _tidings/numbers/                     the outbox's own log of numbers, if the subscriptions have
                                          no log that can be written; see store/numbers
    _tidings/work/00000042-ATTEMPT/       files of an attempt in progress
    _tidings/aside/                       files that no commit names; see outbox_start.py
    _tidings/channel/                     the nodes of the channel, if the pipeline has one

Invariants:
- A batch counts only after it has been committed. Readers read only the attempt that its commit
  names, and ignore all other attempts. Readers get a batch with its numbers, which the channel
  assigns after the commit.
- Files are written in the work folder of an attempt. The committing driver moves only the files
  that tasks reported. So files that are written by a task that was presumed dead never become
  visible.
- A pin is the first file of its batch to be written, and is never changed, so a repeated batch uses
  the same subscriptions.
- The writer holds the lock for as long as it may still commit.
- Commits have no gaps, and a batch begins only when the previous batch has its numbers. So all
  commits up to a batch together say how often each node had occurred by then.
- Every file is written under a temporary name, synced and renamed. Pins and counters contain a
  digest; a commit has the digests of its batch's files.
- Files that were moved into place are never removed.
"""

from __future__ import annotations

import re
import shutil
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from tidings.files import FOLDER, local_path, release_lock, take_lock
from tidings.model import TidingsError
from tidings.spark.outbox.batches.filing import WrittenFile
from tidings.spark.outbox.batches.numbering import ALL
from tidings.spark.outbox.commits import Commit, Commits, DataFile
from tidings.spark.outbox.sealed_files import (
    digest_of,
    make_folder,
    read_sealed,
    sync,
    write_sealed,
    write_whole,
)
from tidings.spark.outbox.spark_checkpoint import STREAM
from tidings.store.groups import Position

__all__ = ["Commit", "KeptCounters", "Outbox", "Pin", "count"]

COUNTERS_EVERY = 100  # batches
HOME = "_tidings"
NUMBER = re.compile("[0-9]{8}|[1-9][0-9]{8,}")  # so that each number has exactly one spelling
Record = TypeVar("Record")


class Pin(msgspec.Struct, frozen=True):
    """The inputs of a batch, apart from its rows."""

    batch: int
    version: int
    micros: int  # the start of the batch, in microseconds since 1970
    offsets: str = ""  # a digest of Spark's record of the batch's rows; see spark_checkpoint.py
    snapshot: str = ""  # the identity of the snapshot, if the pipeline uses a fixed one
    # the life of the channel, if the subscriptions come from a channel; versions are valid within a
    # life
    life: int = 0


class KeptCounters(msgspec.Struct, frozen=True):
    """How often each node occurred up to a batch, and the end of the commits at that time."""

    batch: int
    end: Position
    counters: dict[int, int]


class Outbox:
    """The files of one outbox. One process at a time may write to an outbox."""

    def __init__(self, path: str | Path) -> None:
        self.path = local_path(path, "an outbox to write").absolute()
        self.home = self.path / HOME
        self.log = Commits(self.home / "commits")

    @property
    def channel_folder(self) -> Path:
        """The folder for the pipeline's data about its channel."""
        return self.home / "channel"

    @property
    def numbers_folder(self) -> Path:
        """The folder of the outbox's own log of numbers; see the top of this module."""
        return self.home / "numbers"

    def bind_to_checkpoint(self, checkpoint: Path) -> str:
        """Tie the outbox to the checkpoint of the stream that writes to it; return the stream's id.

        If the stream had another checkpoint, its batches would be numbered from 0 again, and would
        be skipped, because batches with these numbers are already committed.
        """
        mine, theirs = self.home / "stream", checkpoint / STREAM
        have = mine.read_text() if mine.exists() else None
        known = theirs.read_text() if theirs.exists() else None
        if have is None and known is None:
            have = known = uuid.uuid4().hex
            write_whole(theirs, known.encode())
        if have is None and known is not None and not any((checkpoint / "commits").glob("[0-9]*")):
            have = known  # an earlier start was killed before it wrote the id to the outbox
        if have is None or have != known:
            raise TidingsError(
                f"the outbox {self.path} belongs to another checkpoint, not to {checkpoint}; use "
                f"the checkpoint that it belongs to, or an empty outbox"
            )
        write_whole(mine, have.encode())
        return have

    # -- batches -------------------------------------------------------------------------------

    def pin(
        self,
        batch: int,
        version: int,
        micros: int,
        offsets: str = "",
        snapshot: str = "",
        life: int = 0,
    ) -> Pin:
        """Return the existing pin of a batch, or write this one."""
        path = self.pin_path(batch)
        found = _read(path, Pin)
        if found is None:
            found = Pin(batch, version, micros, offsets, snapshot, life)
            write_sealed(path, msgspec.json.encode(found))
        return found

    def read_pin(self, batch: int) -> Pin | None:
        return _read(self.pin_path(batch), Pin)

    def pin_path(self, batch: int) -> Path:
        return self._file("pins", batch)

    def read_commit(self, batch: int) -> Commit | None:
        return self.log.read(batch)

    def commits(self) -> list[int]:
        """The numbers of all committed batches, in order."""
        return list(range(len(self.log)))

    def numbers(self, kind: str) -> list[int]:
        """The batches that have a file of a kind, in order. Files with other names are ignored."""
        stems = (path.stem for path in (self.home / kind).glob("*.json"))
        return sorted(int(stem) for stem in stems if NUMBER.fullmatch(stem))

    def batches(self) -> int:
        """The number of committed batches; this also works for an outbox in the old format."""
        return len(self.numbers("commits")) if self.log.has_old_format() else len(self.log)

    def attempts(self, home: str) -> list[tuple[int, Path]]:
        """The folders of batches in `data` or `dead`, in order, committed or not."""
        found = list[tuple[int, Path]]()
        for folder in (self.path / home).glob("*-*"):
            number = folder.name.partition("-")[0]
            if NUMBER.fullmatch(number):
                found.append((int(number), folder))
        return sorted(found)

    def last(self) -> Commit | None:
        """The latest commit. This method is for users; tidings itself does not call it."""
        return self.read_commit(len(self.log) - 1)

    def folder(self, batch: int, attempt: str) -> Path:
        """The folder of a batch's notifications."""
        return self.path / "data" / f"{batch:08d}-{attempt}"

    def dead_folder(self, batch: int, attempt: str) -> Path:
        return self.path / "dead" / f"{batch:08d}-{attempt}"

    def work_folder(self, batch: int, attempt: str) -> Path:
        """The folder in which the files of an attempt are written."""
        return self.home / "work" / f"{batch:08d}-{attempt}"

    def begin_attempt(self, batch: int) -> str:
        """Begin a new attempt at a batch: create its work folder and return its name."""
        attempt = uuid.uuid4().hex[:12]
        make_folder(self.work_folder(batch, attempt))
        return attempt

    def place(
        self, batch: int, attempt: str, rows: Iterable[WrittenFile], dead: Iterable[WrittenFile]
    ) -> list[DataFile]:
        """Move the files of an attempt into place; return their records for the commit."""
        work = self.work_folder(batch, attempt)
        moves = [(one, self.folder(batch, attempt) / one.grain) for one in rows]
        moves += [(one, self.dead_folder(batch, attempt)) for one in dead]
        found = list[DataFile]()
        for one, folder in moves:
            self._make(folder)
            (work / one.name).rename(folder / one.name)
            path = str((folder / one.name).relative_to(self.path))
            found.append(DataFile(path, one.rows, one.size, one.digest))
        return found

    def _make(self, folder: Path) -> None:
        """Create a folder and its parents; the commit syncs them."""
        if not folder.exists():
            self._make(folder.parent)
            folder.mkdir(FOLDER)

    def drop_work(self, batch: int, attempt: str) -> None:
        """Remove the work folder of a finished attempt. If a task still runs on a machine that was
        presumed lost, its next write fails."""
        shutil.rmtree(self.work_folder(batch, attempt), ignore_errors=True)

    def commit(self, done: Commit) -> None:
        """Commit a batch, after syncing its files. The commit is refused if the files of the batch
        are incomplete."""
        expected = len(self.log)
        if done.batch != expected:
            raise TidingsError(
                f"found batch {done.batch}, expected batch {expected}, the next one of the "
                f"outbox {self.path}"
            )
        if done.partitions:
            filed = len([one for one in done.files if one.path.startswith("data/")])
            counted = sum(one.files for one in done.partitions)
            if filed != counted:
                raise TidingsError(
                    f"batch {done.batch} has {filed} files, expected {counted}; the batch is not "
                    "committed"
                )
        for home, rows in ((self.folder, done.matched), (self.dead_folder, done.refused)):
            folder = home(done.batch, done.attempt)
            begin = f"{folder.relative_to(self.path)}/"
            named = [one for one in done.files if one.path.startswith(begin)]
            found = sum(one.rows for one in named)
            if found != rows:
                raise TidingsError(
                    f"{folder} has {found} rows, expected {rows}; the batch is not committed"
                )
            self._sync(folder, named)
        self.log.append(done)

    def _sync(self, folder: Path, files: list[DataFile]) -> None:
        """Sync the files that workers wrote, before a commit names them."""
        for one in files:
            problem = self.find_problem(one)
            if problem:
                raise TidingsError(f"{problem}; the batch is not committed")
        paths = [self.path / one.path for one in files]
        if paths:
            above = {parent for path in paths for parent in path.parents}
            folders = [one for one in above if one.is_relative_to(folder.parent)]
            for path in (*paths, *folders, self.path):
                sync(path)

    def need_files(self, done: Commit) -> None:
        """Raise DamagedOutbox unless the files of a batch are unchanged, byte for byte."""
        for one in done.files:
            path, problem = self.path / one.path, self.find_problem(one)
            if not problem and one.digest and digest_of(path) != one.digest:
                problem = f"{path} was altered: its checksum differs"
            if problem:
                raise self.log.damage_error(problem)

    def find_problem(self, one: DataFile) -> str:
        """A sentence if a file of a commit is missing or has the wrong size; otherwise ""."""
        path = self.path / one.path
        try:
            size = path.stat().st_size
        except OSError:
            return f"the file {path} is missing"
        return "" if size == one.size else f"{path} has {size:,} bytes, expected {one.size:,}"

    # -- counters ------------------------------------------------------------------------------

    def counters(self) -> dict[int, int]:
        """How often each node occurred in all batches; ALL has the number of notifications."""
        kept = self.read_kept()
        start, found = (-1, dict[int, int]()) if kept is None else (kept.batch, kept.counters)
        for commit in self.log.each(start + 1):
            count(commit, found)
        return found

    def last_numbers(self) -> dict[int, int]:
        """The last number of each node, counting only the batches that have numbers here. Reads all
        commits."""
        found: dict[int, int] = {}
        for commit in self.log.each():
            found.update(commit.counters)
            before = self.log.read_numbers(commit.batch)
            if before is not None:
                counts = commit.count_nodes()
                found.update({node: number + counts[node] for node, number in before.items()})
        found.pop(ALL, None)
        return found

    def put_numbers(self, batch: int, before: Mapping[int, int]) -> None:
        """Store the numbers of a committed batch: for each node, the last number before the
        batch."""
        self.log.append_numbers(batch, before)

    def read_kept(self) -> KeptCounters | None:
        """The last saved counters of a committed batch. Damaged files are skipped, because the
        counters can also be computed from the commits."""
        for number in reversed(self.numbers("counters")):
            if number < len(self.log) and (found := self._read_kept(number)) is not None:
                return found
        return None

    def read_last_kept(self) -> KeptCounters | None:
        """The last saved counters, even if the commit of their batch is missing."""
        found = (self._read_kept(number) for number in reversed(self.numbers("counters")))
        return next((one for one in found if one is not None), None)

    def _read_kept(self, number: int) -> KeptCounters | None:
        with suppress(TidingsError):
            return _read(self._file("counters", number), KeptCounters)
        return None

    def keep_counters(self, batch: int, counters: Mapping[int, int]) -> None:
        """Save all counters every COUNTERS_EVERY batches, so that a start does not have to read
        every commit."""
        if batch % COUNTERS_EVERY == 0:
            kept = KeptCounters(batch, self.log.end, dict(counters))
            write_sealed(self._file("counters", batch), msgspec.json.encode(kept))
            for old in self.numbers("counters")[:-2]:
                self._file("counters", old).unlink(missing_ok=True)

    def folders(self) -> Iterator[Path]:
        """The folders of all committed batches with matched notifications. The files of these
        batches have places instead of numbers; OutboxReader adds the numbers."""
        for done in self.log.each():
            if done.matched:
                yield self.folder(done.batch, done.attempt)

    def dead_folders(self) -> Iterator[Path]:
        """The folders of refused rows. This method is for users; tidings itself does not call
        it."""
        for done in self.log.each():
            if done.refused:
                yield self.dead_folder(done.batch, done.attempt)

    def take_lock(self) -> int:
        """Lock out other writers until `release_lock` is called with the returned descriptor, or
        until the process ends.

        The lock is a bare descriptor, not a file object: when the interpreter shuts down, it closes
        file objects, while a thread may still be committing.
        """
        make_folder(self.home)
        try:
            return take_lock(self.home / "lock")
        except BlockingIOError:
            raise TidingsError(f"another pipeline writes to the outbox {self.path}") from None

    @contextmanager
    def hold_lock(self) -> Iterator[None]:
        """Lock out other writers while the block runs. The lock does not outlive the process."""
        lock = self.take_lock()
        try:
            yield
        finally:
            release_lock(lock)

    def _file(self, kind: str, batch: int) -> Path:
        return self.home / kind / f"{batch:08d}.json"


def count(commit: Commit, counters: dict[int, int]) -> None:
    """Count the nodes of a batch."""
    counters.update(commit.counters)  # commits of older releases contain the counters themselves
    for node, times in commit.count_nodes().items():
        counters[node] = counters.get(node, 0) + times
    if commit.partitions:
        counters[ALL] = commit.before + commit.matched


def _read(path: Path, kind: type[Record]) -> Record | None:
    data = read_sealed(path)
    try:
        return None if data is None else msgspec.json.decode(data, type=kind)
    except msgspec.DecodeError as problem:
        raise TidingsError(f"the file {path} of the outbox can't be read: {problem}") from None
