"""The work that a link does, over one connection or several: a question, or parts to hand over."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from tidings.channel.owner_connection import Connection
from tidings.channel.tagged_part import Part
from tidings.network import Outdated, Refusal
from tidings.routing.clients import Follower, Hander
from tidings.routing.protocol import messages as m


class Later(Exception):
    """The owner can't do now what was asked; another attempt may succeed. The message says why."""


class Work(Protocol):
    """Work that each new connection starts again, until it is done."""

    @property
    def is_done(self) -> bool: ...
    def begin(self, connection: Connection, until: float) -> None:
        """Send everything that was not answered."""

    def send(self, connection: Connection, until: float) -> bool:
        """Send more; return False if nothing can be sent until an answer arrives."""

    def remind(self, connection: Connection, until: float) -> None:
        """Repeat messages that the owner may have ignored because it got too many at once."""

    def receive(self, message: m.Message) -> bool:
        """Process a message; return True if it is an answer. If the message is a refusal, raise
        Later if the owner may accept the request later, and Refusal otherwise."""


class PagedQuestion:
    """A question, and its answer, which may have many pages. The message `before` is sent before
    the question."""

    def __init__(self, question: m.Describe | m.Follow, before: m.Message | None = None) -> None:
        self.follower = Follower(question)
        self._before = before
        self._sent: m.Describe | m.Follow | None = None

    @property
    def is_done(self) -> bool:
        return self.follower.is_done

    def begin(self, connection: Connection, until: float) -> None:
        self._sent = None

    def send(self, connection: Connection, until: float) -> bool:
        question = self.follower.question
        if question is self._sent:
            return False
        if self._before is not None:
            connection.send(self._before, until)
        connection.send(question, until)
        self._sent = question
        return True

    def remind(self, connection: Connection, until: float) -> None:
        connection.send(self.follower.question, until)

    def receive(self, message: m.Message) -> bool:
        is_answer = self.follower.receive(message)
        if self.follower.refusal:
            raise Refusal(self.follower.refusal)
        return is_answer


class Handing:
    """Parts, a few of which are in flight."""

    def __init__(self, parts: Iterator[Part]) -> None:
        self._parts = parts
        self._is_last = False  # were all parts sent at least once?
        self.hander = Hander()

    @property
    def is_done(self) -> bool:
        return self._is_last and not len(self.hander)

    def begin(self, connection: Connection, until: float) -> None:
        for message in self.hander.again():
            connection.send(message, until)

    def send(self, connection: Connection, until: float) -> bool:
        if self._is_last or not self.hander.has_room:
            return False
        part = next(self._parts, None)
        if part is None:
            self._is_last = True
        else:
            connection.send(self.hander.offer(part.message()), until)
        return True

    def remind(self, connection: Connection, until: float) -> None:
        """There is nothing to repeat, because the owner never ignores parts."""

    def receive(self, message: m.Message) -> bool:
        is_answer = self.hander.receive(message)
        refused = self.hander.refused
        if refused is None:
            return is_answer
        if refused.later:
            raise Later(refused.refusal)
        if refused.version:
            raise Outdated(refused.refusal, refused.version)
        raise Refusal(refused.refusal)
