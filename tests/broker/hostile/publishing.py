"""What a publisher with an ordinary token can try."""

from __future__ import annotations

import msgspec
from tests.broker.fuzzing import Attacker, framed
from tests.broker.hostile.attack import GUEST, TRUDY, Attack
from tests.broker.hostile.raw import Raw

from tidings.routing.protocol import frames, messages as m

LARGEST = frames.LARGEST - (1 << 16)  # bytes of a notification


class Sizes(Attack):
    """Notifications at the limits of size, and beyond them."""

    pause = 15.0

    def strike(self) -> None:
        what = self.counts["publications"] % 8
        content = msgspec.json.encode
        if what == 0:
            self.publish({"big": 1}, b"x" * (LARGEST - 100))
        elif what == 1:
            self.publish({"s": "x" * (LARGEST - 100)}, b"")
        elif what == 2:
            self.publish({f"a{n}": n for n in range(200_000)})
        elif what == 3:
            self.publish(b'{"l": ' + b"[" * 100_000 + b"]" * 100_000 + b"}")
        elif what == 4:
            self.publish(content({"l": list(range(1_000_000))}))
        elif what == 5:
            self.publish(b'{"n": ' + b"9" * 1_000_000 + b"}")
        elif what == 6:
            link = self.link(self.ports.edge, GUEST, None, "p")
            self.counts["publications"] += 1
            link.send(framed(b"x" * (frames.LARGEST + 10)))
        else:
            self.publish({"s": "\U0001f4a9" * 1_000_000, "t": "\x00" * 1_000_000})


class Others(Attack):
    """Publications of the others' names, of thousands of names, with stamps that jump, and of what
    is no notification; beside them ordinary ones."""

    pause = 1.0

    def strike(self) -> None:
        link = self.link(self.ports.edge, TRUDY)
        for _ in range(10):
            link.publish({"x": self.chance.random(), "s": "trudy"}, b"x" * 200)
        at = self.counts["publications"]
        names = [f"{link.publisher}/{at + n}" for n in range(20)]
        link.say(*(m.Publish(name, 1, 1, b'{"x": 1}', b"") for name in names))
        link.say(
            m.Publish(f"{link.publisher}/jumps", 2**62, 2**62, b'{"x": 1}', b""),
            m.Publish(f"{link.publisher}/jumps", 5, 1, b'{"x": 1}', b""),
        )
        link.publish(self.chance.choice((b"", b"{", b"[1]", b'{"x": 1e999}', b"\xff")))
        self.counts["publications"] += 33
        guest = self.link(self.ports.edge, GUEST)
        guest.say(m.Publish("writer", 2**62, 2**62, b'{"pair": "forged"}', b"0"))
        self.counts["publications"] += 1


class Fuzz(Attack):
    """Frames that make no sense, see fuzzing.py."""

    pause = 2.0

    def strike(self) -> None:
        port = self.chance.choice(self.ports)
        attacker = Attacker(port, GUEST, self.chance.randrange(1 << 20))
        attacker.attack(60, 5)
        self.counts["frames"] += attacker.sent.total()
        self.counts["ended"] += attacker.said.total()


class Slow(Attack):
    """Readers that want all that is large and never read it."""

    pause = 1.0
    readers = 40
    interest = "slow = 1"

    def strike(self) -> None:
        for number in range(self.readers):
            key = f"slow {number}"
            if key not in self.links:
                reader = Raw(self.ports.edge, f"slow-{number}", GUEST, self.counts, small=True)
                self.links[key] = reader
                reader.ask(self.interest)
                self.counts["readers"] += 1
                reader.take(0.2)
                if reader.answered and reader.epoch:
                    reader.say(m.Subscribe(reader.epoch, (reader.answered,)))
                break
        self.publish({"slow": 1}, b"x" * 200_000)

    def take(self, seconds: float) -> None:
        """Nobody reads but the publisher."""
        mine = {key: one for key, one in self.links.items() if key.startswith("slow")}
        rest = {key: one for key, one in self.links.items() if key not in mine}
        self.links = rest
        super().take(seconds)
        self.links |= mine
        for key, one in mine.items():
            if one.is_there():
                one.keep_alive()
            else:
                one.close()
                self.counts["ended"] += 1
                del self.links[key]
