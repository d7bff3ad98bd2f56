"""The spool: entries fetched from feeds, kept until Spark has processed them.

A feed shows only its latest entries, and Spark may repeat a micro-batch after a crash. So the new
entries of each round of fetching are first written to a numbered file:

    SPOOL/state.json          numbers, owner, and per feed: validators, keys seen, problem
    SPOOL/0000000007.jsonl    the new entries of one round, never changed
    SPOOL/lock                held by the one query that uses the spool

Invariants:
- A spool belongs to the stream that created it. Other streams are refused, because they have read
  other files, and would remove files that the owner still needs.
- `state.json` is written before any other file except the lock file. A folder with other files and
  no state is not a spool and is left alone; in a spool, only files with these exact names are
  changed.
- Spark is told about file n only when `state.json` has `last >= n` and both are on disk. A crash
  may leave a file beyond `last`; Spark does not know about it, so it is removed.
- Files up to `committed` may have been removed; the files from `committed + 1` to `last` exist.
- A key stays in `seen` while its feed shows the entry, and then until the feed has dropped
  REMEMBERED further entries, because feeds may drop entries for an hour and then show them again.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated

import msgspec

from tidings.files import make_folder, release_lock, take_lock
from tidings.model import EnvironmentProblem
from tidings.spark.feeds.feed_documents import Entry, Validators
from tidings.spark.outbox.sealed_files import sync, write_whole

REMEMBERED = 1000
"""How many keys are remembered per feed, in addition to the keys of the entries that it shows."""

STATE = "state.json"

# seconds to wait for the lock, because the process of a stopped query takes a moment to end
_WAIT = 20.0
_FILE = re.compile(r"([0-9]{10})\.jsonl")
_BEGUN = {
    "lock",
    f".{STATE}.new",
}  # files that can remain if a process crashes before it writes the first state
_Number = Annotated[int, msgspec.Meta(ge=0)]


class FeedState(msgspec.Struct):
    """The state of one feed."""

    validators: Validators = Validators()
    seen: list[str] = []
    problem: str = ""


class SpoolState(msgspec.Struct, forbid_unknown_fields=True):
    """The state of a spool. The first fields have no defaults, so that an unrelated file named
    `state.json` is not accepted."""

    last: _Number
    committed: _Number
    feeds: dict[str, FeedState]
    owner: str = ""  # the id of the stream; empty if the query does not give it


class Spool:
    """A spool folder, used by this object alone."""

    def __init__(self, folder: Path, owner: str = "") -> None:
        self._folder = folder
        try:
            make_folder(folder)
            _need_own(folder)
            self._lock = self._take_lock()
        except OSError as error:
            raise EnvironmentProblem(f"the spool {folder} can't be used: {error}") from error
        try:
            self._state = load_state(folder) or SpoolState(0, 0, {})
            _need_owner(folder, self._state, owner)
            self._state.owner = owner
            self._saved = b""
            self.save()
            self._tidy()
        except BaseException:
            self.close()
            raise

    @property
    def last(self) -> int:
        """The number of the newest file."""
        return self._state.last

    @property
    def committed(self) -> int:
        """The number of the newest file that Spark has processed."""
        return self._state.committed

    def feed(self, address: str) -> FeedState:
        """The state of a feed; changes are written by the next `save` or `add`."""
        return self._state.feeds.setdefault(address, FeedState())

    def forget_others(self, addresses: Iterable[str]) -> None:
        """Drop the state of feeds that are no longer read."""
        for address in self._state.feeds.keys() - set(addresses):
            del self._state.feeds[address]

    def take_new(self, address: str, shown: list[Entry]) -> list[Entry]:
        """Of the entries that a feed shows, return the new ones, and mark all as seen."""
        feed = self.feed(address)
        keys = [entry.key() for entry in shown]
        seen = set(feed.seen)
        fresh = [entry for key, entry in zip(keys, shown, strict=True) if key not in seen]
        now = set(keys)
        feed.seen = [key for key in feed.seen if key not in now][-REMEMBERED:] + keys
        return fresh

    def add(self, entries: list[Entry]) -> None:
        """Write a file of new entries, and then the state."""
        lines = b"".join(msgspec.json.encode(entry) + b"\n" for entry in entries)
        write_whole(self._file(self._state.last + 1), lines)
        self._state.last += 1
        self.save()

    def save(self) -> None:
        """Write the state if it changed."""
        data = msgspec.json.encode(self._state)
        if data != self._saved:
            write_whole(self._folder / STATE, data)
            self._saved = data

    def read(self, number: int) -> Iterator[Entry]:
        """The entries of one file."""
        try:
            lines = self._file(number).read_bytes().splitlines()
        except FileNotFoundError as error:
            raise EnvironmentProblem(
                f"the spool {self._folder} lacks file {number}, which the checkpoint needs: "
                "the spool belongs to another checkpoint, or files were removed from it"
            ) from error
        for at, line in enumerate(lines, 1):
            try:
                yield msgspec.json.decode(line, type=Entry)
            except (ValueError, RecursionError) as error:
                raise EnvironmentProblem(
                    f"{self._file(number)}, line {at}, is not an entry of a feed: {error}"
                ) from error

    def commit(self, number: int) -> None:
        """Remove files that Spark will not read again."""
        if number > self._state.committed:
            self._state.committed = number
            self.save()
            self._tidy()

    def catch_up(self, number: int) -> None:
        """Number new files from `number` + 1 on, because the checkpoint may be ahead of a new
        spool."""
        if number <= self._state.last:
            return
        if self._state.last > self._state.committed:
            raise EnvironmentProblem(
                f"the spool {self._folder} ends with file {self._state.last}, but the checkpoint "
                f"ends with file {number}: they do not belong together"
            )
        self._state.last = self._state.committed = number
        self.save()

    def close(self) -> None:
        """Release the folder, so that another query can use it."""
        if self._lock >= 0:
            release_lock(self._lock)
        self._lock = -1

    def _file(self, number: int) -> Path:
        return self._folder / f"{number:010}.jsonl"

    def _take_lock(self) -> int:
        deadline = time.monotonic() + _WAIT
        while True:
            try:
                return take_lock(self._folder / "lock")
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise EnvironmentProblem(
                        f"the spool {self._folder} is used by another query: give each query its "
                        "own spool"
                    ) from None
                time.sleep(0.1)

    def _tidy(self) -> None:
        """Remove committed files, and files that a crash left beyond `last`."""
        removed = False
        for path in self._folder.iterdir():
            named = _FILE.fullmatch(path.name)
            if named and not self._state.committed < int(named[1]) <= self._state.last:
                path.unlink()
                removed = True
        if removed:
            sync(self._folder)


def load_state(folder: Path) -> SpoolState | None:
    """The state of the spool in a folder, whether or not it is in use; None if there is none."""
    path = folder / STATE
    try:
        return msgspec.json.decode(path.read_bytes(), type=SpoolState)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise EnvironmentProblem(f"{path} can't be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:  # includes DecodeError and UnicodeDecodeError
        raise EnvironmentProblem(f"{path} is not the state of a spool: {error}") from error


def feed_problems(folder: Path) -> dict[str, str]:
    """The feeds whose last fetch failed, each with its problem."""
    state = load_state(folder)
    feeds = {} if state is None else state.feeds
    return {address: feed.problem for address, feed in feeds.items() if feed.problem}


def check_spool(folder: Path, owner: str) -> None:
    """Refuse a folder that `Spool` would refuse, without writing anything."""
    if folder.is_dir():
        _need_own(folder)
        state = load_state(folder)
        if state is not None:
            _need_owner(folder, state, owner)


def _need_owner(folder: Path, state: SpoolState, owner: str) -> None:
    if state.owner not in ("", owner):
        raise EnvironmentProblem(
            f"the spool {folder} belongs to another checkpoint: give this stream its own spool, "
            "or remove this one together with its checkpoint"
        )


def _need_own(folder: Path) -> None:
    """Refuse a folder that contains other files and no spool."""
    found = {path.name for path in folder.iterdir()}
    if STATE not in found and found - _BEGUN:
        raise EnvironmentProblem(
            f"the folder {folder} is not a spool, but it contains {min(found - _BEGUN)}: use an "
            "empty folder for the spool"
        )
