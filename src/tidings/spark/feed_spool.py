"""The spool: what was fetched from feeds, kept until Spark has done with it.

A feed shows only its latest entries, and Spark may ask for a micro-batch again after a crash. So
each round of fetching that found something new is written to a numbered file first:

    SPOOL/state.json          numbers, and per feed: validators, keys seen, the problem it has
    SPOOL/0000000007.jsonl    the new entries of one round, never changed
    SPOOL/lock                held by the one query that uses the spool

Invariants:
- Spark hears of file n only after `state.json` says `last >= n` and both are on the disk. A file
  beyond `last` was left by a crash; nobody has heard of it, and it is removed.
- Files up to `committed` are gone or may go; those from there to `last` are there.
- A key that is in a file is in `seen` for as long as its feed shows the entry, and for REMEMBERED
  keys more, because feeds drop entries for an hour and show them again.
"""

from __future__ import annotations

import fcntl
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from tidings.model import EnvironmentProblem
from tidings.spark.durable import sync, write_whole
from tidings.spark.feed_documents import Entry, Validators

REMEMBERED = 1000
"""Keys that are remembered per feed beyond those that it shows."""

_WAIT = 20.0  # seconds; the process of a query that was just stopped takes a moment to end


class FeedState(msgspec.Struct):
    """What is remembered of one feed."""

    validators: Validators = Validators()
    seen: list[str] = []
    problem: str = ""


class SpoolState(msgspec.Struct):
    """What is remembered of all of them."""

    last: int = 0
    committed: int = 0
    feeds: dict[str, FeedState] = {}


class Spool:
    """A spool folder that is in use by this object alone."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._state_file = folder / "state.json"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = (folder / "lock").open("a")
        except OSError as error:
            raise EnvironmentProblem(f"The spool {folder} cannot be used: {error}.") from error
        self._take_lock()
        self._state = self._load()
        self._saved = msgspec.json.encode(self._state)
        self._tidy()

    @property
    def last(self) -> int:
        """The number of the newest file."""
        return self._state.last

    @property
    def committed(self) -> int:
        """The number of the newest file that Spark has done with."""
        return self._state.committed

    def feed(self, address: str) -> FeedState:
        """What is remembered of a feed; changes are kept with the next `save` or `add`."""
        return self._state.feeds.setdefault(address, FeedState())

    def forget_others(self, addresses: Iterable[str]) -> None:
        """Drop what is remembered of feeds that are no longer asked for."""
        for address in self._state.feeds.keys() - set(addresses):
            del self._state.feeds[address]

    def fresh(self, address: str, shown: list[Entry]) -> list[Entry]:
        """The entries not seen before, of all that a feed shows now; they are seen from here on."""
        feed = self.feed(address)
        keys = [entry.key() for entry in shown]
        seen = set(feed.seen)
        fresh = [entry for key, entry in zip(keys, shown, strict=True) if key not in seen]
        now = set(keys)
        feed.seen = [key for key in feed.seen if key not in now][-REMEMBERED:] + keys
        return fresh

    def add(self, entries: list[Entry]) -> None:
        """Write a file of new entries, and what is remembered with it."""
        lines = b"".join(msgspec.json.encode(entry) + b"\n" for entry in entries)
        write_whole(self._file(self._state.last + 1), lines)
        self._state.last += 1
        self.save()

    def save(self) -> None:
        """Write what is remembered, when it changed."""
        data = msgspec.json.encode(self._state)
        if data != self._saved:
            write_whole(self._state_file, data)
            self._saved = data

    def read(self, number: int) -> Iterator[Entry]:
        """The entries of one file."""
        try:
            lines = self._file(number).read_bytes().splitlines()
        except FileNotFoundError as error:
            raise EnvironmentProblem(
                f"The spool {self._folder} lacks file {number}, which the checkpoint asks for: "
                "it belongs to another checkpoint, or files were removed from it."
            ) from error
        for line in lines:
            yield msgspec.json.decode(line, type=Entry)

    def commit(self, number: int) -> None:
        """Remove files that will not be asked for again."""
        if number > self._state.committed:
            self._state.committed = number
            self.save()
            self._tidy()

    def catch_up(self, number: int) -> None:
        """Number new files from after `number`: the checkpoint may have outlived a spool."""
        if number <= self._state.last:
            return
        if self._state.last > self._state.committed:
            raise EnvironmentProblem(
                f"The spool {self._folder} ends with file {self._state.last} and the checkpoint "
                f"with {number}: they do not belong together."
            )
        self._state.last = self._state.committed = number
        self.save()

    def close(self) -> None:
        """Let another query use the folder."""
        self._lock.close()

    def _file(self, number: int) -> Path:
        return self._folder / f"{number:010}.jsonl"

    def _take_lock(self) -> None:
        deadline = time.monotonic() + _WAIT
        while True:
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if time.monotonic() > deadline:
                    self._lock.close()
                    raise EnvironmentProblem(
                        f"The spool {self._folder} is used by another query: give each its own."
                    ) from None
                time.sleep(0.1)

    def _load(self) -> SpoolState:
        try:
            return msgspec.json.decode(self._state_file.read_bytes(), type=SpoolState)
        except FileNotFoundError:
            return SpoolState()
        except msgspec.DecodeError as error:
            raise EnvironmentProblem(
                f"{self._state_file} is not the state of a spool: {error}."
            ) from error

    def _tidy(self) -> None:
        """Remove files that are committed, and those that a crash left before they counted."""
        removed = False
        for path in self._folder.glob("[0-9]*.jsonl"):
            if not self._state.committed < int(path.stem) <= self._state.last:
                path.unlink()
                removed = True
        if removed:
            sync(self._folder)
