"""The owner of a channel; requests are repeated until it answers.

A pipeline can do nothing without the owner: a batch needs the current version, and a committed
batch must be handed over before the next one. So the pipeline waits, and reports this once in the
log, and in a file that `tidings pipeline status` reads. If the owner refuses a request, the request
is not repeated.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from tidings.channel import UNOWNED, Changes, ChannelLink, Description, Part
from tidings.files import make_durable_folder, replace_file
from tidings.model import TidingsError
from tidings.network import TimedOut
from tidings.store.owner import SOCKET

# seconds that one attempt may take; a pipeline that is asked to end waits no longer than this
TRY = 5.0
PAUSE = 0.5  # seconds between two attempts
WAITING = "waiting.json"

_log = logging.getLogger(__name__)
Found = TypeVar("Found")


class WaitingForOwner(msgspec.Struct, frozen=True):
    """Why a pipeline waits for the owner of its channel, and since when."""

    since: int  # in microseconds since 1970
    reason: str


class Stopped(TidingsError):
    """The pipeline was asked to end while it waited."""


class ChannelOwner:
    """The owner of a channel, for one thread at a time."""

    def __init__(
        self,
        address: str | Path,
        *,
        name: str | None = None,
        token: str = "",
        authorities: Path | None = None,
        folder: Path | None = None,
        patient: bool = True,
    ) -> None:
        """`address` may be the folder of the channel. `name` is needed if the token is bound to a
        name. While a request waits, a file in `folder` says why, and since when. Without `patient`,
        a request raises TimedOut if the owner does not answer."""
        self.address = str(address)
        self.stop = threading.Event()
        """When this is set, requests no longer wait, but raise Stopped."""
        self.waiting = ""
        """Why the pipeline waits for the owner; empty if it does not wait."""
        self._folder = address if isinstance(address, Path) else None
        self._note = None if folder is None else folder / WAITING
        self._patient = patient
        trusted = None if authorities is None else str(authorities)
        self._link = ChannelLink(address, name=name, token=token, authorities=trusted, timeout=TRY)
        self._forget_waiting()

    def describe(self, *, patient: bool = True) -> Description:
        """The definition of the channel."""
        return self._ask(self._link.describe, patient)

    def changes(self, since: int, life: int) -> Changes:
        """The changes to nodes since a version of a life, as the owner currently knows them."""
        return self._ask(lambda: self._link.changes(since, life))

    def hand_over(self, parts: Sequence[Part]) -> None:
        """Hand parts over; they are on the owner's disk when this returns."""
        self._ask(lambda: self._link.hand_over(parts))

    def report_fault(self, predicate: str, version: str, reason: str) -> None:
        """Report that a predicate fails here, so that the owner switches it off."""
        self._ask(lambda: self._link.report_fault(predicate, version, reason))

    def close(self) -> None:
        self._link.close()

    def _ask(self, question: Callable[[], Found], patient: bool = True) -> Found:
        while True:
            if self.stop.is_set():
                raise Stopped(f"the pipeline ended while it waited for the channel {self.address}")
            is_patient = patient and self._patient
            if is_patient and not self.waiting and self._is_unowned():
                # the wait is reported before the first attempt, because an owner may never start
                self._say_waiting(UNOWNED)
            try:
                found = question()
            except TimedOut as problem:
                if not is_patient:
                    raise
                if not self.waiting:
                    self._say_waiting(str(problem))
                self.stop.wait(PAUSE)
                continue
            if self.waiting:
                _log.warning("the channel %s answers again", self.address)
                self._forget_waiting()
            return found

    def _is_unowned(self) -> bool:
        """Whether it is certain that nobody owns the folder. This does not try to take the lock: a
        rendezvous point that starts at that moment would find it taken."""
        return self._folder is not None and not (self._folder / SOCKET).exists()

    def _say_waiting(self, reason: str) -> None:
        self.waiting = reason
        _log.warning("waiting for the channel %s: %s", self.address, reason)
        if self._note is not None:
            make_durable_folder(self._note.parent)
            one = WaitingForOwner(time.time_ns() // 1000, reason)
            replace_file(self._note, msgspec.json.encode(one), hidden=True)

    def _forget_waiting(self) -> None:
        self.waiting = ""
        if self._note is not None:
            self._note.unlink(missing_ok=True)


def read_waiting(folder: Path) -> WaitingForOwner | None:
    """Why the pipeline with this folder waits; None if it is not waiting."""
    with suppress(FileNotFoundError, msgspec.DecodeError):
        return msgspec.json.decode((folder / WAITING).read_bytes(), type=WaitingForOwner)
    return None
