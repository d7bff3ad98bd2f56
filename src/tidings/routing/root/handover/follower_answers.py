"""Answers for clients that tag elsewhere: the definition of the channel, and its nodes.

An answer waits until all earlier writes are on the disk. So a crash can't undo a node that a client
has used in a tag.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from tidings.routing.forwarding.neighbours import Charges, Context, Name
from tidings.routing.protocol import messages as m
from tidings.routing.root.interests import Interests
from tidings.routing.root.nodes import Registry
from tidings.routing.root.relating import Relating
from tidings.routing.root.write_queue import WriteQueue

MOST_FOLLOWERS = 10_000  # followers beyond this number are not counted


class Definition(msgspec.Struct, frozen=True):
    """The definition of a channel."""

    name: str = ""
    attributes: dict[str, str] | None = None  # the declared types, as texts
    extra: str = "open"  # what happens to undeclared attributes
    preprocessor: str = ""  # the kind of interest, as JSON; empty if filters are the only kind


class FollowerState(NamedTuple):
    """A follower: when it last asked, and the life and the version that it had."""

    time: float
    life: int
    version: int


class Registered(NamedTuple):
    """A preprocessor: when it registered, its message, and how many changes it lacked at that
    time."""

    time: float
    said: m.Register
    behind: int


class Following:
    """Answers Describe, Follow and Seek. A neighbour that asks too much gets no answer, and asks
    again."""

    def __init__(
        self,
        context: Context,
        charges: Charges,
        interests: Interests,
        registry: Registry,
        queue: WriteQueue,
        definition: Definition,
        relating: Relating | None = None,
    ) -> None:
        self._context = context
        self._charges = charges
        self._interests = interests
        self._registry = registry
        self._queue = queue
        self._definition = definition
        self._relating = relating
        self._preprocessors: dict[str, Registered] = {}  # by address
        self.followers: dict[str, FollowerState] = {}  # by name; silent followers are removed

    def register(self, message: m.Register) -> None:
        """Remember the address of a preprocessor until it stops registering. If
        there are too many preprocessors, new ones are ignored."""
        self._forget_silent()
        if (
            len(self._preprocessors) < m.MOST_PREPROCESSORS
            or message.address in self._preprocessors
        ):
            behind = self._count_missing(message.life, message.version)
            known = Registered(self._context.now, message, behind)
            self._preprocessors[message.address] = known

    def _count_missing(self, life: int, version: int) -> int:
        """How many changes to nodes came after this version of a life; the number of all nodes if
        that is not known."""
        registry = self._registry
        known = life == registry.history.life and registry.history.has_changes_since(version)
        return registry.count_since(version) if known else len(registry)

    def list_preprocessors(self) -> list[Registered]:
        """The preprocessors that registered recently, by name and address."""
        self._forget_silent()
        found = self._preprocessors.values()
        return sorted(found, key=lambda one: (one.said.name, one.said.address))

    def seek(self, sender: Name, message: m.Seek) -> None:
        """Answer with the addresses of preprocessors."""
        if self._charges.may_ask(sender):
            self._forget_silent()
            self._charges.charge(sender, 1 + len(self._preprocessors))
            found = tuple(self._preprocessors)
            self._context.send(sender, m.Found(self._context.epoch, message.request, found))

    def _note_follower(self, message: m.Follow) -> None:
        if len(self.followers) < MOST_FOLLOWERS or message.follower in self.followers:
            heard = FollowerState(self._context.now, message.life, message.since)
            self.followers[message.follower] = heard

    def count_followers(self) -> tuple[int, int]:
        """How many followers there are, and how many of them have acknowledged the current way of
        reading filters."""
        since = self._context.now - self._context.times.expire
        self.followers = {name: one for name, one in self.followers.items() if one.time >= since}
        history = self._registry.history
        done = [
            one
            for one in self.followers.values()
            if one.life == history.life and one.version >= history.renewed
        ]
        return len(self.followers), len(done)

    def _forget_silent(self) -> None:
        since = self._context.now - self._context.times.expire
        self._preprocessors = {
            address: one for address, one in self._preprocessors.items() if one.time >= since
        }

    def answer(self, sender: Name, message: m.Describe | m.Follow) -> None:
        if not self._charges.may_ask(sender):
            return
        epoch, request = self._context.epoch, message.request
        if isinstance(message, m.Describe):
            life, what = self._registry.history.life, self._definition
            answer: m.Message = m.Described(
                epoch, request, what.name, life, what.attributes, what.extra,
                preprocessor=what.preprocessor,
            )  # fmt: skip
            self._charges.charge(sender, 1)
        else:
            if message.follower:
                self._note_follower(message)
            hidden = () if self._relating is None else self._relating.bases
            answer = self._registry.page(message, self._interests.text, epoch, hidden)
            self._charges.charge(sender, 1 + len(answer.changes))
        if not self._queue.failed:  # without an answer, the neighbour asks again
            self._queue.hold((sender, answer))
