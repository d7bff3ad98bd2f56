"""The objects that the parts of one state machine share: its settings, the time, its life, its
neighbours, and the messages that it is about to send."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable

import msgspec

from tidings.routing.forwarding.neighbours.accounts import Account
from tidings.routing.protocol import messages as m
from tidings.routing.protocol.digests import Tally
from tidings.routing.protocol.limits import Limits
from tidings.routing.protocol.lineage import LineageState
from tidings.routing.protocol.message_merging import merge_messages
from tidings.routing.protocol.times import Times

Name = Hashable
Sent = tuple[Name, m.Message]


class Signed(msgspec.Struct, frozen=True):
    """A signed grant of a neighbour, for one node."""

    key: bytes  # the identity of the signing key
    agent: str  # the owner that may use the grant
    life: int
    within: m.Within  # the filters that cover the node
    ends: float  # when it expires


class Neighbour(msgspec.Struct):
    """What is known about a neighbour below."""

    heard: float
    nodes: set[int] = msgspec.field(default_factory=set)  # the nodes that it wants
    tally: Tally = msgspec.field(default_factory=Tally)  # a digest of `nodes`
    done: int = 0  # the neighbour needs no notifications up to this serial
    says_done: bool = False  # whether the neighbour has reported `done`; publishers never do
    part: int = 0  # the slice of the neighbour's edges that the next digest is about
    unknown: set[int] = msgspec.field(default_factory=set)  # wanted nodes not in the graph yet
    placed: set[int] = msgspec.field(default_factory=set)  # wanted, at places that it knows
    left_out: bool = False  # some of its wanted nodes were left out, because of a limit
    own: Account = msgspec.field(default_factory=Account)  # pays for the neighbour's own questions
    behind: Account = msgspec.field(default_factory=Account)  # pays for questions that it passes on
    beaten: float = float("-inf")  # when the last beat was sent to the neighbour
    granted: dict[int, m.Within] = msgspec.field(default_factory=dict)  # see rights.py
    signed: dict[int, Signed] = msgspec.field(default_factory=dict)  # signed grants, by node


class Context:
    """The objects that the parts of one state machine share."""

    def __init__(self, name: str, times: Times, limits: Limits, first_request: int) -> None:
        self.name = name
        self.times = times
        self.limits = limits
        self.standing = LineageState(times, first_request, hands_on=True)
        self.neighbours: dict[Name, Neighbour] = {}
        self.now = 0.0
        self.beyond: Counter[str] = Counter()  # refused requests, by the limit that they exceeded
        self.queued_bytes: Callable[[Name], int] = lambda _: 0  # bytes queued for a neighbour
        self.owner_of: Callable[[Name], str] = lambda _: ""
        """The owner of a neighbour's requests; empty for routers, which name owners themselves."""
        self.party_of: Callable[[Name], str] = lambda _: ""
        """The owner of a neighbour's named subscriptions, if the router where the neighbour applied
        for its link knows the owner by another name; otherwise empty."""
        self.within_of: Callable[[Name], m.Within] = lambda _: ()
        """The filters that must cover all nodes that a neighbour subscribes to; empty if it may
        subscribe to all nodes."""
        self._out: list[Sent] = []
        self._single = 0  # how many messages in `_out` can be merged

    @property
    def epoch(self) -> int:
        """The last known life of the rendezvous point."""
        return self.standing.life

    def send(self, to: Name, message: m.Message) -> None:
        self._out.append((to, message))

    def send_single(self, to: Name, message: m.Message) -> None:
        """Send a message about one node, which can be merged with other messages of its kind."""
        self._single += 1
        self._out.append((to, message))

    def drain_outgoing(self) -> list[Sent]:
        out, self._out = self._out, []
        if self._single > 1:
            out = merge_messages(out)
        self._single = 0
        return out
