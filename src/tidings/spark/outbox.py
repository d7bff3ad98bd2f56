"""The outbox: what subscribers are to be told, on disk, each batch once.

    data/00000042-ATTEMPT/grain=.../      the notifications of a batch that matched, Parquet
    dead/00000042-ATTEMPT/                rows that were refused, with the reason
    _tidings/stream                       which stream writes here
    _tidings/pins/00000042.json           what it is made of: version of the subscriptions, time
    _tidings/commits/00000042.json        what it came to, and the counters of its nodes after it
    _tidings/counters/00000100.json       all counters after a batch, now and then
    _tidings/work/00000042-ATTEMPT/       files of an attempt that is under way

Invariants. A batch is there when its commit is, in the attempt that the commit names; readers look
at no other. Files are made in the work folder of an attempt, and whoever commits moves those that
he was told of; what a process that was thought dead still writes is never seen. A pin is written
before anything of its batch and never changed, so a batch that is done again sees the same
subscriptions. Whoever writes holds the lock, for as long as a commit of his can still come.
Commits follow each other without a gap, so the counters after a batch are known from its commit and
those before it. Every file is written beside its place, synced, and renamed.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import msgspec
import pyarrow.parquet as pq

from tidings.files import make_folder, open_private
from tidings.model import TidingsError
from tidings.spark.checkpoint import STREAM
from tidings.spark.durable import sync, write_whole
from tidings.spark.filing import Filed

COUNTERS_EVERY = 100  # batches
HOME = "_tidings"
_NUMBER = re.compile("[0-9]{8}|[1-9][0-9]{8,}")  # as batches are called, in one way only
Record = TypeVar("Record")


class Pin(msgspec.Struct, frozen=True):
    """What a batch is made of, beside its rows."""

    batch: int
    version: int
    micros: int  # when it began, since 1970
    offsets: str = ""  # a digest of what Spark noted as its rows; see checkpoint.py
    snapshot: str = ""  # which snapshot, where subscriptions stay as they are


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


class Outbox:
    """The files of one outbox. One process at a time writes to it."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).absolute()
        self.home = self.path / HOME

    # -- which stream --------------------------------------------------------------------------

    def belong(self, checkpoint: Path) -> str:
        """Tie the outbox to the checkpoint of the stream that writes to it; the stream's id.

        With another checkpoint batches would be counted from 0 again and taken for done.
        """
        mine, theirs = self.home / "stream", checkpoint / STREAM
        have = mine.read_text() if mine.exists() else None
        known = theirs.read_text() if theirs.exists() else None
        if have is None and known is None:
            have = known = uuid.uuid4().hex
            write_whole(theirs, known.encode())
        if have is None and known is not None and not any((checkpoint / "commits").glob("[0-9]*")):
            have = known  # it was stopped between the two writings
        if have is None or have != known:
            raise TidingsError(
                f"the outbox {self.path} belongs to another checkpoint than {checkpoint}; give it "
                f"its own, or write to an empty outbox"
            )
        write_whole(mine, have.encode())
        return have

    # -- batches -------------------------------------------------------------------------------

    def pin(
        self, batch: int, version: int, micros: int, offsets: str = "", snapshot: str = ""
    ) -> Pin:
        """The pin of a batch: the one that is there, or this one from now on."""
        path = self.pin_path(batch)
        found = _read(path, Pin)
        if found is None:
            found = Pin(batch, version, micros, offsets, snapshot)
            write_whole(path, msgspec.json.encode(found))
        return found

    def pinned(self, batch: int) -> Pin | None:
        return _read(self.pin_path(batch), Pin)

    def pin_path(self, batch: int) -> Path:
        return self._file("pins", batch)

    def committed(self, batch: int) -> Commit | None:
        return _read(self._file("commits", batch), Commit)

    def commits(self) -> list[int]:
        """The batches that are there, in order."""
        return self.numbers("commits")

    def numbers(self, kind: str) -> list[int]:
        """The batches that have a file of a kind, in order. A file that is not called as those are
        was put there by someone else, and is passed over."""
        stems = (path.stem for path in (self.home / kind).glob("*.json"))
        return sorted(int(stem) for stem in stems if _NUMBER.fullmatch(stem))

    def last(self) -> Commit | None:
        """The latest commit."""
        numbers = self.commits()
        return self.committed(numbers[-1]) if numbers else None

    def folder(self, batch: int, attempt: str) -> Path:
        """Where the notifications of a batch go."""
        return self.path / "data" / f"{batch:08d}-{attempt}"

    def dead_folder(self, batch: int, attempt: str) -> Path:
        return self.path / "dead" / f"{batch:08d}-{attempt}"

    def work_folder(self, batch: int, attempt: str) -> Path:
        """Where the files of an attempt are made."""
        return self.home / "work" / f"{batch:08d}-{attempt}"

    def attempt(self, batch: int) -> str:
        """A new attempt at a batch that is not there, with its work folder."""
        attempt = uuid.uuid4().hex[:12]
        make_folder(self.work_folder(batch, attempt))
        return attempt

    def place(self, batch: int, attempt: str, rows: Iterable[Filed], dead: Iterable[str]) -> None:
        """Move the files of an attempt to where they are read."""
        work = self.work_folder(batch, attempt)
        moves = [(filed.name, self.folder(batch, attempt) / filed.grain) for filed in rows]
        moves += [(name, self.dead_folder(batch, attempt)) for name in dead]
        for name, folder in moves:
            make_folder(folder)
            (work / name).rename(folder / name)

    def drop_work(self, batch: int, attempt: str) -> None:
        """Remove what is left of an attempt that is over. A task of it that still runs, on a
        machine that was thought lost, then fails to write."""
        shutil.rmtree(self.work_folder(batch, attempt), ignore_errors=True)

    def sweep(self) -> None:
        """Remove what attempts left behind that no commit names."""
        shutil.rmtree(self.home / "work", ignore_errors=True)
        for home in ("data", "dead"):
            found: dict[int, list[Path]] = {}
            for folder in (self.path / home).glob("*-*"):
                number = folder.name.partition("-")[0]
                if _NUMBER.fullmatch(number):
                    found.setdefault(int(number), []).append(folder)
            there = set(self.commits())
            for batch, folders in found.items():
                if batch in there and len(folders) == 1:
                    continue  # it is the one: attempts at the same rows write the same kinds
                done = self.committed(batch)
                for folder in folders:
                    if done is None or folder.name != self.folder(batch, done.attempt).name:
                        shutil.rmtree(folder, ignore_errors=True)

    def commit(self, done: Commit) -> None:
        """From now on the batch is there. Its files are, whole and synced, or this is refused."""
        there = self.committed(done.batch) is not None
        follows = done.batch == 0 or self.committed(done.batch - 1) is not None
        if there or not follows:  # two looks: a list of all commits would grow with the stream
            last = self.last()
            expected = 0 if last is None else last.batch + 1
            raise TidingsError(
                f"found batch {done.batch}, expected {expected}, the next of the outbox {self.path}"
            )
        for home, rows in ((self.folder, done.matched), (self.dead_folder, done.refused)):
            folder = home(done.batch, done.attempt)
            found = _sync_tree(folder)
            if found != rows:
                raise TidingsError(
                    f"{folder} has {found} rows, expected {rows}; the batch is not committed"
                )
        write_whole(self._file("commits", done.batch), msgspec.json.encode(done))

    # -- counters ------------------------------------------------------------------------------

    def counters(self) -> dict[int, int]:
        """The last number of every node, after the last commit."""
        last = self.last()
        if last is None:
            return {}
        kept = self.numbers("counters")
        start, found = -1, dict[int, int]()
        for number in reversed([number for number in kept if number <= last.batch]):
            read = _read(self._file("counters", number), dict[int, int])
            if read is not None:
                start, found = number, read
                break
        for number in self.commits():
            if number > start:
                commit = self.committed(number)
                found.update({} if commit is None else commit.counters)
        return found

    def keep_counters(self, batch: int, counters: Mapping[int, int]) -> None:
        """Write all counters down now and then, so that a start need not read every commit."""
        if batch % COUNTERS_EVERY == 0:
            write_whole(self._file("counters", batch), msgspec.json.encode(dict(counters)))
            for old in self.numbers("counters")[:-2]:
                self._file("counters", old).unlink(missing_ok=True)

    def folders(self) -> Iterator[Path]:
        """The folders of all batches that are there and told someone something."""
        for batch in self.commits():
            done = self.committed(batch)
            if done is not None and done.matched:
                yield self.folder(batch, done.attempt)

    def dead_folders(self) -> Iterator[Path]:
        """The folders of the rows that were refused."""
        for batch in self.commits():
            done = self.committed(batch)
            if done is not None and done.refused:
                yield self.dead_folder(batch, done.attempt)

    def hold(self) -> int:
        """Keep other writers out, until `os.close` of what is given back or the process is gone.

        It is a bare number, not a file object: those are closed when an interpreter goes down, and
        a thread of it may still be at a commit then.
        """
        make_folder(self.home)
        lock = open_private(self.home / "lock", os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            raise TidingsError(f"another pipeline writes to the outbox {self.path}") from None
        return lock

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep other writers out for a while; a process that dies lets go."""
        lock = self.hold()
        try:
            yield
        finally:
            os.close(lock)

    def _file(self, kind: str, batch: int) -> Path:
        return self.home / kind / f"{batch:08d}.json"


def _read(path: Path, kind: type[Record]) -> Record | None:
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return None
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.DecodeError as problem:
        raise TidingsError(f"the file {path} of the outbox can't be read: {problem}") from None


def _sync_tree(folder: Path) -> int:
    """Files that workers wrote are synced too, before a commit says that they are there; the rows
    in them."""
    rows = 0
    if folder.is_dir():
        for path in (*folder.rglob("*"), folder, folder.parent):
            sync(path)
            if path.suffix == ".parquet":
                rows += pq.read_metadata(path).num_rows
    return rows
