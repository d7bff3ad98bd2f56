"""Attacks with connections alone: floods, incomplete messages, and silence."""

from __future__ import annotations

import contextlib
import random
import select
import socket
import time
from collections import deque

from tests.broker.hostile.attack import EVIL, GUEST, MALLORY, Attack, Ports

from tidings.routing.protocol import frames, messages as m

ALL = 10_000  # places
AGAIN = 5.0  # seconds between two signs of life of a place


def connected(port: int, first: bytes = b"") -> socket.socket | None:
    one = socket.socket()
    one.settimeout(2.0)
    try:
        one.connect(("127.0.0.1", port))
        one.sendall(first)
    except OSError:
        one.close()
        return None
    one.setblocking(False)
    return one


class Places(Attack):
    """One token of guests that takes all places, and says enough to keep them."""

    pause = 0.5
    at_once = 40

    def __init__(self, ports: Ports, chance: random.Random) -> None:
        super().__init__(ports, chance)
        self.held: deque[tuple[float, socket.socket]] = deque()
        self.number = 0

    def strike(self) -> None:
        for _ in range(self.at_once):
            self.number += 1
            if len(self.held) >= ALL:
                break
            name = f"place-{self.number}"
            one = connected(self.ports.edge, frames.encode(m.Hello(name, "", GUEST)))
            self.counts["hellos"] += 1
            if one is not None:
                self.held.append((time.monotonic(), one))
        self._keep()
        self.counts["places, at most"] = max(self.counts["places, at most"], len(self.held))

    def _keep(self) -> None:
        sign = frames.encode(m.Resubscribe(0, m.Digest()))
        for _ in range(len(self.held)):
            since, one = self.held[0]
            if time.monotonic() - since < AGAIN:
                break
            self.held.popleft()
            try:
                with contextlib.suppress(BlockingIOError):
                    while one.recv(1 << 16):
                        pass
                    raise OSError("it was ended")
                one.sendall(sign)
                self.held.append((time.monotonic(), one))
            except OSError:
                one.close()
                self.counts["ended"] += 1

    def close(self) -> None:
        for _, one in self.held:
            one.close()


class HalfOpen(Attack):
    """Connections that say nothing, half of a greeting, or half of a frame after it."""

    pause = 1.0
    at_once = 20
    most = 1000

    def __init__(self, ports: Ports, chance: random.Random) -> None:
        super().__init__(ports, chance)
        self.held: deque[socket.socket] = deque()

    def strike(self) -> None:
        hello = frames.encode(m.Hello("h" * 200, "", GUEST))
        for number in range(self.at_once):
            whole = frames.encode(m.Hello(f"half-{number}", "", GUEST))
            large = frames.encode(m.Publish("*/x", 1, 1, b"", b"x" * 1_000_000))
            pieces = (b"", hello[:1], hello[:9], hello[:-1], whole + large[:500_000])
            said = self.chance.choice(pieces)
            one = connected(self.chance.choice(self.ports), said)
            self.counts["connections"] += 1
            if one is not None:
                self.held.append(one)
        while len(self.held) > self.most:
            self.held.popleft().close()
        for one in list(self.held)[:50]:
            with contextlib.suppress(OSError):
                one.send(b"\x00")

    def close(self) -> None:
        for one in self.held:
            one.close()


class Hellos(Attack):
    """Greetings with wrong tokens, with names that are bound to others, as routers; and right ones
    that leave at once."""

    pause = 0.5

    def strike(self) -> None:
        hellos = [m.Hello(f"x{n}", "", f"guess-{self.chance.random()}") for n in range(15)]
        hellos += [
            m.Hello("reader", "", GUEST), m.Hello("writer", "", MALLORY),
            m.Hello("edge", "", GUEST),
            m.Hello("mallory2", "", MALLORY), m.Hello("mallory", "", MALLORY, routes=True),
            m.Hello("edge", "", EVIL, routes=True),
            m.Hello("a/b", "", GUEST), m.Hello("*", "", GUEST),
            m.Hello("x" * 255, "y" * 3000, GUEST), m.Hello("here and gone", "", GUEST),
        ]  # fmt: skip
        waiting = []
        for hello in hellos:
            one = connected(self.chance.choice(self.ports), frames.encode(hello))
            self.counts["hellos"] += 1
            if one is not None:
                waiting.append(one)
        if waiting:
            select.select(waiting, [], [], 0.1)
        for one in waiting:
            with contextlib.suppress(OSError):
                self.counts["refused"] += b"\xa7goodbye" in one.recv(4096)
            one.close()
