"""One channel of a node: its state machine, or the data that is kept while it sleeps, and its
numbers on links."""

from __future__ import annotations

from typing import Any

from tidings.routing.channels.sleeping import Asleep
from tidings.routing.forwarding.neighbours import Name


class Channel:
    """A channel of a node. Either it is awake and has a `machine`, or it is `asleep`."""

    __slots__ = (
        "asleep", "beaten", "below", "extra", "hop", "is_kept", "machine", "name", "told", "up",
        "used", "woken",
    )  # fmt: skip

    def __init__(self, name: str, machine: Any, hop: Name | None, now: float) -> None:
        self.name = name
        self.machine: Any = machine
        self.asleep: Asleep | None = None
        self.hop = hop  # the node above for this channel; None at its rendezvous point
        self.up = 0  # the channel's number on the link to the hop
        self.below: dict[Name, int] = {}  # the channel's number on each link from below
        self.is_kept = False  # whether the node keeps the channel even if nobody uses it
        self.used = now  # when a message that was not a repetition was last received or sent
        self.woken = now
        self.beaten = float("-inf")  # when the machine last sent a beat
        self.told = 0  # notifications that were forwarded so far
        self.extra: Any = None
        """Other data that the node keeps for this channel while it is awake."""
