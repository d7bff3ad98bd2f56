"""Hands changes to the owner of a folder."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tidings.files import hold_lock
from tidings.model import EnvironmentProblem, TidingsError
from tidings.store import folder as f
from tidings.store.owner import owner_socket as s

GREETING = 60.0  # seconds to wait for a greeting; a starting owner reads its log first
ANSWER = 60.0  # seconds to wait for an answer or a `Working` message
PATIENCE = 15.0  # seconds to wait for a starting owner to listen, or for a stopping owner to end
PAUSE = 0.02


class Unowned(Exception):
    """Nobody owns the folder any more, and nothing was handed over."""


class Died(Exception):
    """The owner `instance` has ended without saying whether it made the changes."""

    def __init__(self, instance: bytes) -> None:
        self.instance = instance


def hand_over(folder: Path, missing: Callable[[], Sequence[s.Asked]], but: bytes = b"") -> int:
    """Hand changes to the owner. When they are on the disk, return their version; return 0 if no
    change is missing.

    `missing` is called as soon as the greeting of the owner has arrived: by then, the previous
    owner has ended, and the log has everything that the previous owner wrote. Raises Unowned or
    Died (see these classes), TidingsError if the owner refuses the changes, and EnvironmentProblem
    if the owner does not answer. `but` identifies an owner that is not asked again, because this
    owner could still make these changes.
    """
    with _connect_to_owner(folder) as (link, greeting):
        _need_other(greeting, but)
        changes = [*missing()]
        if not changes:
            return 0
        return _ask(link, greeting, s.Changes(changes))


def hand_adoption(folder: Path, asked: s.Adopt, find: Callable[[], int], but: bytes = b"") -> int:
    """Let the owner adopt a snapshot; return the version as soon as it is on the disk. `find` is
    called like `missing` in `hand_over`, and returns the version if the snapshot was adopted
    already, otherwise 0. Raises the same errors as `hand_over`."""
    with _connect_to_owner(folder) as (link, greeting):
        _need_other(greeting, but)
        return find() or _ask(link, greeting, asked)


def hand_declaration(
    folder: Path, asked: s.Declare, find: Callable[[], int | None], but: bytes = b""
) -> int:
    """Let the owner declare attributes; return the version of the declaration as soon as it is on
    the disk. `find` is called like `missing` in `hand_over`, and returns the version if the
    attributes are declared already, otherwise None. Raises the same errors as `hand_over`."""
    with _connect_to_owner(folder) as (link, greeting):
        _need_other(greeting, but)
        found = find()
        return _ask(link, greeting, asked) if found is None else found


def _need_other(greeting: s.Greeting, but: bytes) -> None:
    if greeting.instance == but:
        raise EnvironmentProblem(
            f"{_owner(greeting)} closed the connection before it answered, so it is not known "
            "whether the change was made; `tidings subscriptions log` shows it"
        )


def _ask(link: socket.socket, greeting: s.Greeting, question: s.Message) -> int:
    """Ask for changes; return the version as soon as they are on the disk."""
    try:
        s.send(link, question)
        return _await_answer(link, greeting)
    except (OSError, EOFError) as problem:
        if isinstance(problem, TimeoutError):
            raise EnvironmentProblem(
                f"{_owner(greeting)} has not answered for {ANSWER:.0f} s, so it is not known "
                "whether the change was made; `tidings subscriptions log` shows it"
            ) from None
        raise Died(greeting.instance) from None


def ask_for_folder(folder: Path) -> bool:
    """Ask a pipeline to give up a folder; False if it does not."""
    try:
        with _connect_to_owner(folder) as (link, _):
            s.send(link, s.Yield())
            return isinstance(s.receive(link), s.Done)
    except (Unowned, EOFError):
        return True  # the owner has just ended
    except (OSError, ValueError, EnvironmentProblem):
        return False


def join_owner(folder: Path) -> socket.socket:
    """A link to the rendezvous point that owns a folder. Raise Unowned if nobody owns the folder,
    and EnvironmentProblem if the owner is not a rendezvous point, or does not answer."""
    try:
        with _connect_to_owner(folder) as (link, greeting):
            s.send(link, s.Join())
            answer = s.receive(link)
            if not isinstance(answer, s.Done):
                raise EnvironmentProblem(
                    f"{_owner(greeting)} is not in a network; expected a rendezvous point"
                )
            return link.dup()
    except FileNotFoundError:  # there is no such folder
        raise Unowned from None
    except (OSError, EOFError, ValueError) as problem:
        raise EnvironmentProblem(
            f"the process that owns '{folder}' closed the connection: {problem}"
        ) from None


@contextlib.contextmanager
def _connect_to_owner(folder: Path) -> Iterator[tuple[socket.socket, s.Greeting]]:
    """A connection to the owner, and its greeting."""
    link = _connect(folder)
    try:
        link.settimeout(GREETING)
        try:
            greeting = s.receive(link)
            if not isinstance(greeting, s.Greeting):
                raise ValueError(f"found {type(greeting).__name__}, expected a greeting")
        except TimeoutError:
            raise EnvironmentProblem(
                f"the process that owns '{folder}' does not answer; nothing was changed"
            ) from None
        except (OSError, EOFError):
            raise Unowned from None  # the owner has ended, or is restarting
        except ValueError as problem:
            raise EnvironmentProblem(
                f"the process that owns '{folder}' uses another protocol ({problem}); nothing was "
                "changed; use the same release of tidings as that process"
            ) from None
        if greeting.speaks != s.SPEAKS:
            raise EnvironmentProblem(
                f"{_owner(greeting)} uses version {greeting.speaks} of the protocol for commands, "
                f"expected version {s.SPEAKS}; nothing was changed; use the same release of "
                "tidings as that process"
            )
        link.settimeout(ANSWER)
        yield link, greeting
    finally:
        link.close()


def _connect(folder: Path) -> socket.socket:
    limit = time.monotonic() + PATIENCE
    while True:
        try:
            return s.connect(folder, GREETING)
        except (FileNotFoundError, ConnectionRefusedError, BlockingIOError) as problem:
            with hold_lock(folder / f.LOCK):
                owned = f.is_owned(folder)
            if not owned:
                raise Unowned from None
            if time.monotonic() > limit:
                if isinstance(problem, BlockingIOError):
                    said = "has too many commands to answer; try again"
                else:
                    said = (
                        "accepts no changes from commands, because it runs an older release, or "
                        "the file system of the folder does not support sockets; use the address "
                        "of the rendezvous point, or stop it first"
                    )
                raise EnvironmentProblem(
                    f"a running rendezvous point owns '{folder}', and {said}"
                ) from None
            time.sleep(PAUSE)
        except OSError as problem:
            raise EnvironmentProblem(
                f"another process owns '{folder}', and its socket {folder / s.NAME} can't be "
                f"used: {problem.strerror}; nothing was changed"
            ) from None


def _await_answer(link: socket.socket, greeting: s.Greeting) -> int:
    while True:
        answer = s.receive(link)
        if isinstance(answer, s.Done):
            return answer.version
        if isinstance(answer, s.Refused):
            if answer.is_fault:
                raise EnvironmentProblem(f"{_owner(greeting)} can't write: {answer.sentence}")
            raise TidingsError(answer.sentence)


def _owner(greeting: s.Greeting) -> str:
    return f"the {greeting.what} that owns the folder (process {greeting.process})"
