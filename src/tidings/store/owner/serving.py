"""Accepts changes from commands, in threads, and answers as soon as they are on the disk."""

from __future__ import annotations

import logging
import os
import secrets
import socket
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, wait
from pathlib import Path

from tidings.model import EnvironmentProblem, TidingsError
from tidings.store.owner import owner_socket as s

SIGN = 5.0  # seconds between `Working` messages
QUESTION = 60.0  # seconds to wait for the request of a command
ENDING = 1.0  # seconds to wait until the thread that accepts commands ends
MOST_AT_ONCE = 32  # other commands wait in the queue of the socket

_log = logging.getLogger(__name__)
Take = Callable[[list[s.Asked]], "Future[int]"]
TakeSnapshot = Callable[[s.Adopt], "Future[int]"]
TakeDeclaration = Callable[[s.Declare], "Future[int]"]
Welcome = Callable[[socket.socket], None]


class CommandServer:
    """Answers commands until `stop` is called."""

    def __init__(
        self,
        folder: Path,
        listener: socket.socket,
        take: Take,
        what: str,
        give_up: Callable[[], None] | None = None,
        adopt: TakeSnapshot | None = None,
        welcome: Welcome | None = None,
        declare: TakeDeclaration | None = None,
    ) -> None:
        """`take` makes changes, `adopt` adopts a snapshot, and `declare` declares attributes; any
        thread may call them. Each returns a Future of the version, which is done as soon as the
        version is on the disk. `what` tells commands what kind of process the owner is. `give_up`
        gives the folder to a rendezvous point. `welcome` is called with the connection of a
        pipeline that joins."""
        self._folder = folder
        self._listener = listener
        self._take = take
        self._give_up = give_up
        self._adopt = adopt
        self._welcome = welcome
        self._declare = declare
        self._greeting = s.Greeting(s.SPEAKS, secrets.token_bytes(16), what, os.getpid())
        self._free = threading.Semaphore(MOST_AT_ONCE)
        self._thread = threading.Thread(
            target=self._accept, daemon=True, name="changes of commands"
        )
        self._thread.start()

    def stop(self) -> None:
        """Stop listening; requests that have arrived are still answered, as long as the process
        runs."""
        s.close_listener(self._folder, self._listener)
        self._thread.join(ENDING)

    def _accept(self) -> None:
        while True:
            self._free.acquire()
            try:
                link, _ = self._listener.accept()
            except OSError:
                return  # stopped
            threading.Thread(target=self._answer, args=(link,), daemon=True).start()

    def _answer(self, link: socket.socket) -> None:
        try:
            with link:
                link.settimeout(QUESTION)
                s.send(link, self._greeting)
                question = s.receive(link)
                if isinstance(question, s.Changes):
                    self._await(link, self._take(question.changes))
                elif isinstance(question, s.Adopt) and self._adopt is not None:
                    self._await(link, self._adopt(question))
                elif isinstance(question, s.Declare) and self._declare is not None:
                    self._await(link, self._declare(question))
                elif isinstance(question, s.Yield) and self._give_up is not None:
                    self._give_up()
                    s.send(link, s.Done(0))
                elif isinstance(question, s.Join) and self._welcome is not None:
                    s.send(link, s.Done(0))
                    self._welcome(link.dup())
                else:
                    s.send(link, s.Refused("the owner of the folder does not support this request"))
        except (OSError, EOFError, ValueError):
            pass  # the command has closed the connection; a change that it asked for is still made
        except Exception:
            _log.exception("a command could not be answered")
        finally:
            self._free.release()

    def _await(self, link: socket.socket, making: Future[int]) -> None:
        """Wait for a change to be made, and send its version, or the reason why it was not made."""
        while not wait([making], SIGN).done:
            s.send(link, s.Working())
        try:
            answer: s.Message = s.Done(making.result())
        except (EnvironmentProblem, OSError) as problem:
            answer = s.Refused(str(problem), is_fault=True)
        except TidingsError as problem:
            answer = s.Refused(str(problem))
        except CancelledError:
            return  # the owner stops; without an answer, the command searches the log
        except BaseException as problem:
            _log.exception("a change could not be made")
            answer = s.Refused(f"an error in the owner: {problem!r}", is_fault=True)
        s.send(link, answer)
