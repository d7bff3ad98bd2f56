"""What all attacks share: the ports of the routers, connections that reconnect, and counts."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from tests.broker.hostile.raw import Over, Raw

from tidings.routing.protocol import messages as m

GUEST, MALLORY, TRUDY, EVIL = "guests", "mallorys", "trudys", "evils"  # tokens
SPARK = "sparks"
NAMES = {MALLORY: "mallory", TRUDY: "trudy", EVIL: "evil", SPARK: "spark"}


class Ports(NamedTuple):
    """The honest pair is at the edge. Everybody with an ordinary token may connect anywhere."""

    root: int
    edge: int
    side: int


class Attack(ABC):
    """One way to do harm, in strokes with a pause between them."""

    pause = 0.5  # seconds

    def __init__(self, ports: Ports, chance: random.Random) -> None:
        self.ports = ports
        self.chance = chance
        self.counts: Counter[str] = Counter()
        self.links: dict[str, Raw] = {}
        self._born = 0

    @abstractmethod
    def strike(self) -> None:
        """Do harm once."""

    def link(
        self,
        port: int,
        token: str = GUEST,
        hear: Callable[[m.Message], None] | None = None,
        what: str = "",
    ) -> Raw:
        """The connection of a token to a router, made anew where it was ended."""
        key = f"{port} {token} {what}"
        found = self.links.get(key)
        if found is None:
            self._born += 1
            name = NAMES.get(token) or f"{type(self).__name__}-{what}-{self._born % 5}"
            found = Raw(port, name, token, self.counts, routes=token == EVIL, hear=hear)
            found.publisher = f"{name if token in NAMES else f'*/{name}'}/{self.chance.random()}"
            self.links[key] = found
        return found

    def publish(self, attributes: object, payload: bytes = b"x") -> None:
        """As a guest, at the router of the honest pair."""
        self.link(self.ports.edge, GUEST, None, "p").publish(attributes, payload)
        self.counts["publications"] += 1

    def take(self, seconds: float) -> None:
        """Hear what the routers say on all connections."""
        for key, one in [*self.links.items()]:
            try:
                one.take(seconds / len(self.links))
                one.keep_alive()
            except Over:
                self.links.pop(key, None)

    def forget_ended(self) -> None:
        """A connection failed: have all of them made again."""
        for one in self.links.values():
            one.close()
        self.links.clear()

    def close(self) -> None:
        self.forget_ended()


class Subscriber:
    """Asks for filters over a connection, and subscribes to the nodes that it is told."""

    def __init__(self) -> None:
        self.nodes: list[int] = []
        self.subscribed = 0

    def hear(self, message: m.Message) -> None:
        if isinstance(message, m.Answer) and message.node:
            self.nodes.append(message.node)

    def subscribe(self, link: Raw) -> None:
        """To what was answered since the last time."""
        if self.nodes and link.epoch:
            self.subscribed += len(self.nodes)
            link.say(m.Subscribe(link.epoch, tuple(self.nodes)))
            self.nodes.clear()
