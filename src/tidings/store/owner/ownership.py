"""Lets the driver of a pipeline own a folder, and finds the changes that a dead owner made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Protocol

from tidings.files import release_lock
from tidings.model import Id
from tidings.store import folder as f
from tidings.store.owner.owner_socket import listen
from tidings.store.owner.serving import CommandServer, Take, TakeDeclaration


class Ownership:
    """A folder that this process owns; the process makes the changes that commands ask for."""

    def __init__(
        self,
        folder: Path,
        catch_up: Callable[[], None],
        take: Take,
        give_up: Callable[[], None],
        declare: TakeDeclaration,
    ) -> None:
        """`catch_up` keeps the complete groups that a dead writer left in the log. It is called
        before commands get a greeting, because commands that have the greeting look for their
        changes in the log. Raises BlockingIOError if there is another owner, and another OSError if
        the folder can't be written, or its file system does not support sockets."""
        self._held = f.own(folder)
        try:
            catch_up()
            self._serving = CommandServer(
                folder, listen(folder), take, "pipeline", give_up, declare=declare
            )
        except BaseException:
            release_lock(self._held)
            raise

    def end(self) -> None:
        """Stop accepting changes, and release the folder."""
        self._serving.stop()
        release_lock(self._held)


class Made(Protocol):
    """A change in the log."""

    @property
    def version(self) -> int: ...
    @property
    def id(self) -> Id: ...
    @property
    def filter(self) -> str | None: ...
    @property
    def dialect(self) -> str: ...


class WantedChange(Protocol):
    """A change that was asked for."""

    @property
    def id(self) -> Id: ...
    @property
    def text(self) -> str | None: ...
    @property
    def dialect(self) -> str: ...


def find_versions(changes: Iterable[Made], wanted: Sequence[WantedChange]) -> list[int]:
    """The versions of the wanted changes that are in the log: those found in order, up to the first
    one that is missing.

    If another process made an equal change at the same time, that change counts too: both processes
    asked for the same change, and simultaneous changes can be in any order in the log.
    """
    found: list[int] = []
    for one in changes:
        if len(found) == len(wanted):
            break
        it = wanted[len(found)]
        if one.id == it.id and one.filter == it.text and \
                (it.text is None or one.dialect == it.dialect):  # fmt: skip
            found.append(one.version)
    return found
