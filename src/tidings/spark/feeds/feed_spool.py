"""The spool: what was fetched from feeds, kept until Spark has done with it.

A feed shows only its latest entries, and Spark may ask for a micro-batch again after a crash. So
each round of fetching that found something new is written to a numbered file first:

    SPOOL/state.json          numbers, whose it is, and per feed: validators, keys seen, problem
    SPOOL/0000000007.jsonl    the new entries of one round, never changed
    SPOOL/lock                held by the one query that uses the spool

Invariants:
- A spool has one owner for good, the stream that began it. To another, which has its own idea of
  what is read, it is refused: that one would take files that the owner will ask for.
- `state.json` is there before anything else but the lock. A folder that has other files and no
  state is somebody else's and is left alone; in ours, only files of these exact names are touched.
- Spark hears of file n only after `state.json` says `last >= n` and both are on the disk. A file
  beyond `last` was left by a crash; nobody has heard of it, and it is removed.
- Files up to `committed` are gone or may go; those from there to `last` are there.
- A key that is in a file is in `seen` for as long as its feed shows the entry, and for REMEMBERED
  keys more, because feeds drop entries for an hour and show them again.
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
"""Keys that are remembered per feed beyond those that it shows."""

STATE = "state.json"

_WAIT = 20.0  # seconds; the process of a query that was just stopped takes a moment to end
_FILE = re.compile(r"([0-9]{10})\.jsonl")
_BEGUN = {"lock", f".{STATE}.new"}  # what a crash can leave before the first state
_Number = Annotated[int, msgspec.Meta(ge=0)]


class FeedState(msgspec.Struct):
    """What is remembered of one feed."""

    validators: Validators = Validators()
    seen: list[str] = []
    problem: str = ""


class SpoolState(msgspec.Struct, forbid_unknown_fields=True):
    """What is remembered of all of them. No field may be missing: a file of somebody else's that
    has the same name would be taken for a state."""

    last: _Number
    committed: _Number
    feeds: dict[str, FeedState]
    owner: str = ""  # the identity of a stream; none is known where a query does not say


class Spool:
    """A spool folder that is in use by this object alone."""

    def __init__(self, folder: Path, owner: str = "") -> None:
        self._folder = folder
        try:
            make_folder(folder)
            _need_own(folder)
            self._lock = self._take_lock()
        except OSError as error:
            raise EnvironmentProblem(f"The spool {folder} cannot be used: {error}.") from error
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
        """The number of the newest file that Spark has done with."""
        return self._state.committed

    def feed(self, address: str) -> FeedState:
        """What is remembered of a feed; changes are kept with the next `save` or `add`."""
        return self._state.feeds.setdefault(address, FeedState())

    def forget_others(self, addresses: Iterable[str]) -> None:
        """Drop what is remembered of feeds that are no longer asked for."""
        for address in self._state.feeds.keys() - set(addresses):
            del self._state.feeds[address]

    def take_new(self, address: str, shown: list[Entry]) -> list[Entry]:
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
            write_whole(self._folder / STATE, data)
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
        for at, line in enumerate(lines, 1):
            try:
                yield msgspec.json.decode(line, type=Entry)
            except (ValueError, RecursionError) as error:
                raise EnvironmentProblem(
                    f"{self._file(number)}, line {at}, is not an entry of a feed: {error}."
                ) from error

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
                        f"The spool {self._folder} is used by another query: give each its own."
                    ) from None
                time.sleep(0.1)

    def _tidy(self) -> None:
        """Remove files that are committed, and those that a crash left before they counted."""
        removed = False
        for path in self._folder.iterdir():
            named = _FILE.fullmatch(path.name)
            if named and not self._state.committed < int(named[1]) <= self._state.last:
                path.unlink()
                removed = True
        if removed:
            sync(self._folder)


def load_state(folder: Path) -> SpoolState | None:
    """What the spool in a folder remembers, in use or not; None where there is no spool."""
    path = folder / STATE
    try:
        return msgspec.json.decode(path.read_bytes(), type=SpoolState)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise EnvironmentProblem(f"{path} cannot be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:  # DecodeError, and one of Unicode's own
        raise EnvironmentProblem(f"{path} is not the state of a spool: {error}.") from error


def feed_problems(folder: Path) -> dict[str, str]:
    """The feeds that could not be read when they were last looked at, each with its sentence."""
    state = load_state(folder)
    feeds = {} if state is None else state.feeds
    return {address: feed.problem for address, feed in feeds.items() if feed.problem}


def check_spool(folder: Path, owner: str) -> None:
    """Refuse a folder that `Spool` would refuse; nothing is written."""
    if folder.is_dir():
        _need_own(folder)
        state = load_state(folder)
        if state is not None:
            _need_owner(folder, state, owner)


def _need_owner(folder: Path, state: SpoolState, owner: str) -> None:
    if state.owner not in ("", owner):
        raise EnvironmentProblem(
            f"The spool {folder} belongs to another checkpoint: give this stream a spool of its "
            "own, or remove that one with the checkpoint that it belongs to."
        )


def _need_own(folder: Path) -> None:
    """Refuse a folder that somebody else has files in."""
    found = {path.name for path in folder.iterdir()}
    if STATE not in found and found - _BEGUN:
        raise EnvironmentProblem(
            f"The folder {folder} is not empty and no spool, it has {min(found - _BEGUN)}: "
            "give the spool a folder of its own."
        )
