"""What a router with the right `route` can try: it may pass on what others publish and ask for,
and whatever it says to those below it is believed by them."""

from __future__ import annotations

import contextlib
import random
import socket
import threading
from socket import create_server

from tests.broker.hostile.attack import EVIL, Attack, Ports, Subscriber
from tests.broker.hostile.raw import Raw, packed

import tidings
from tidings.model import TidingsError
from tidings.routing.protocol import frames, messages as m


class Forged(Attack):
    """Publications under the name of the honest publisher, whose name and stamps it reads in the
    notifications; and under names of which nobody has heard."""

    pause = 1.0
    token = EVIL

    def __init__(self, ports: Ports, chance: random.Random) -> None:
        super().__init__(ports, chance)
        self.victim, self.stamp = "", 0
        self.subscriber = Subscriber()

    def hear(self, message: m.Message) -> None:
        self.subscriber.hear(message)
        if isinstance(message, m.Notification) and message.publisher.startswith("writer"):
            self.victim, self.stamp = message.publisher, message.stamp

    def strike(self) -> None:
        link = self.link(self.ports.root, EVIL, self.hear)
        if not self.victim:
            link.ask("pair = 'ours'")
            self.subscriber.subscribe(link)
            return
        for jump in (2**62, self.stamp + 1000, self.stamp + 50_000):
            self.forge(link, jump, jump)
        self.forge(link, max(1, self.stamp - 20), 1)  # said before
        self.forge(link, 2**62, 1)
        for name in range(20):
            said = m.Publish(f"nobody/{self.counts['forged']}/{name}", 7, 7, b"{}", b"")
            link.say(said)
            self.counts["forged"] += 1

    def forge(self, link: Raw, stamp: int, first: int) -> None:
        link.say(m.Publish(self.victim, stamp, first, b'{"pair": "forged"}', b"0"))
        self.counts["forged"] += 1


class Claims(Attack):
    """Filters in the name of the honest subscriber, and reports of nodes that are not there."""

    pause = 1.0

    def __init__(self, ports: Ports, chance: random.Random) -> None:
        super().__init__(ports, chance)
        self.subscriber = Subscriber()
        self.number = 0

    def strike(self) -> None:
        link = self.link(self.ports.side, EVIL, self.subscriber.hear)
        for _ in range(10):
            self.number += 1
            interest = f"claim{self.number} IS NULL".encode()
            link.send(packed("ask", self.number, interest, "reader"))
        self.subscriber.subscribe(link)
        one = m.NodeStatus(0, "edge", "router", "127.0.0.1:1", told_in=2**60)
        link.say(m.Report((one,) * self.chance.choice((1, 900))))
        self.counts["claims"] += 10


class Liar(Attack):
    """A router between the rendezvous point and a client of its own, which it tells what never
    was: other lives, counts, notifications, acknowledgments. Its client may be harmed; what the
    client then says goes up, as that of the router."""

    pause = 0.5

    def __init__(self, ports: Ports, chance: random.Random) -> None:
        super().__init__(ports, chance)
        self.server = create_server(("127.0.0.1", 0))
        self.below: socket.socket | None = None
        self.lock = threading.Lock()
        self.epoch = 0
        threading.Thread(target=self._serve, daemon=True).start()
        threading.Thread(target=self._be_fooled, daemon=True).start()

    def strike(self) -> None:
        chance, below = self.chance, self.below
        if below is None:
            return
        epoch = chance.choice((self.epoch, 1, 2**62, chance.randrange(2**62)))
        big = chance.choice((0, 5, 2**40, 2**62))
        mark = m.Mark(chance.randrange(50), big, (chance.randrange(50),))
        totals = dict.fromkeys(range(30), big)
        lies = [
            frames.encode(m.Beat(epoch, big, totals, m.Digest(big, big), big)),
            frames.encode(m.Notification(epoch, big, (mark,), b"0", "writer", big)),
            frames.encode(m.Published(epoch, "writer", big)),
            frames.encode(m.Gone(epoch, tuple(range(40)))),
            frames.encode(m.Refuse(epoch, tuple(range(40)))),
            frames.encode(m.Which(epoch)),
            packed("lineage", epoch, 1, [[epoch, 1], [2**61, big]]),
        ]
        try:
            with self.lock:
                below.sendall(chance.choice(lies))
            self.counts["lies"] += 1
        except OSError:
            self.below = None

    def _serve(self) -> None:
        """Take one client after the other, and pass on what is said, frame by frame."""
        while True:
            below, _ = self.server.accept()
            below.settimeout(30)
            self.counts["clients"] += 1
            with contextlib.suppress(OSError):
                above = socket.create_connection(("127.0.0.1", self.ports.root), timeout=30)
                above.sendall(frames.encode(m.Hello("liar", "", "liars", routes=True)))
                threading.Thread(target=self._pass_up, args=(below, above), daemon=True).start()
                self._pass_down(above, below)
            below.close()

    def _pass_up(self, below: socket.socket, above: socket.socket) -> None:
        rest, greeted = b"", False
        with contextlib.suppress(OSError, frames.FrameError):
            while data := below.recv(1 << 16):
                starts, end = frames.split(rest := rest + data)
                if starts and not greeted:  # the client's own greeting ends here
                    greeted, (_, *starts) = True, starts
                    self.below = below
                if starts:
                    above.sendall(rest[starts[0] : end])
                rest = rest[end:]
        above.close()

    def _pass_down(self, above: socket.socket, below: socket.socket) -> None:
        rest = b""
        while data := above.recv(1 << 16):
            starts, end = frames.split(rest := rest + data, 64 << 20)
            for start in starts:
                if rest[start + 4] != frames.NOTIFICATION:
                    message = frames.decode(rest, start)
                    if isinstance(message, m.Down):
                        self.epoch = message.epoch
            with self.lock:
                below.sendall(rest[:end])
            rest = rest[end:]

    def _be_fooled(self) -> None:
        """The client of this router."""
        address = f"tidings://127.0.0.1:{self.server.getsockname()[1]}"
        while True:
            with (
                contextlib.suppress(TidingsError, OSError, TimeoutError),
                tidings.connect_blocking(address, name="fooled") as agent,
                agent.subscribe("pair = 'ours'") as told,
            ):
                for _ in range(50):
                    found = told.next(timeout=1)
                    self.counts[f"fooled: {type(found).__name__}"] += 1
            threading.Event().wait(1)
