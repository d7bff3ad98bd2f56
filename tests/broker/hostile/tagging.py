"""What a holder of `preprocess` can try, and whoever would like to be one."""

from __future__ import annotations

import random
import struct

from tests.broker.fuzzing import HUGE
from tests.broker.hostile.attack import GUEST, SPARK, Attack, Ports
from tests.broker.hostile.raw import packed

from tidings.routing.protocol import messages as m

MOST = 4 << 20  # bytes of a part


class Tagged(Attack):
    """Parts at the limits of size and beyond them, with nodes that are there and that are not, out
    of turn, of many sources, in other lives; and all filters, over and over. It tags with no node
    that the honest pair could want."""

    pause = 0.5

    def __init__(self, ports: Ports, chance: random.Random) -> None:
        super().__init__(ports, chance)
        self.life = self.version = 0
        self.nodes: list[int] = []
        self.batch = 0

    def strike(self) -> None:
        link = self.link(self.ports.root, SPARK, self.hear)
        link.say(m.Describe(1), m.Follow(2), m.Follow(3, self.version, self.life))
        numbers = self.chance.choices((0, 1, self.version, *HUGE), k=4)
        link.say(m.Follow(4, numbers[0], numbers[1], numbers[2], numbers[3]))
        status = self.chance.choices((0, 1, self.life, self.version, *HUGE), k=4)
        link.say(m.Register("tidings://127.0.0.1:1", "\U0001f514" * 255, *status), m.Seek(5))
        chance, batch = self.chance, self.batch
        if self.nodes:
            few = chance.sample(self.nodes, min(5, len(self.nodes)))
            link.say(self.part("real", batch, few, 20_000), self.part("real", batch, few, 20_000))
            link.say(self.part(f"other {batch}", 0, self.nodes * 50, 3))
            self.batch += 1
        link.say(
            self.part("real", batch + 7, self.nodes[:1], 1),
            self.part("unknown", batch, [chance.choice((10**9, *HUGE))], 1),
            m.HandOver("life", 0, 0, True, 7, self.version, bytes(8), b"", bytes(8), b""),
            m.HandOver("large", 0, 0, True, self.life, 0, bytes(8), b"", bytes(8), bytes(MOST)),
            m.HandOver("odd", 0, 0, True, self.life, 0, b"x", b"y" * 9, b"", b""),
        )
        guest = self.link(chance.choice(self.ports), GUEST)
        guest.ask(f"f{batch % 100} > {chance.randrange(5)}")  # nodes that come and go
        guest.say(m.Describe(1), m.Follow(2), self.part("guest", 0, [1], 1))
        self.counts["parts"] += 9
        if not batch % 10:  # which ends the link
            link.send(packed("hand over", "x" * 300, 0, 0, True, 1, 1, b"", b"", b"", b""))

    def hear(self, message: m.Message) -> None:
        if isinstance(message, m.Changed) and not message.refusal:
            self.life, self.version = message.life, message.version
            known = {one.node: one.filter for one in message.changes if one.filter is not None}
            safe = [node for node, text in known.items() if text.startswith("f")]
            self.nodes = [*{*self.nodes, *safe}][-500:]
        elif isinstance(message, m.Taken) and not message.refusal:
            self.counts["taken"] += 1

    def part(self, source: str, batch: int, nodes: list[int], rows: int) -> m.HandOver:
        tag = sorted(set(nodes))
        starts = [at * len(tag) for at in range(rows + 1)]
        sizes = range(0, 100 * (rows + 1), 100)
        payloads = bytes(100 * rows)
        return m.HandOver(
            source, batch, 0, True, self.life, self.version, _packed(starts), _packed(tag * rows),
            _packed(sizes), payloads,
        )  # fmt: skip


def _packed(numbers: list[int] | range) -> bytes:
    return struct.pack(f"<{len(numbers)}q", *numbers)
