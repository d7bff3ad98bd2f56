"""A pipeline in the world: it mirrors the nodes of the channel, tags points with them by itself,
and hands them over. What it has committed to its outbox survives its crashes."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from tidings.routing.clients.tagging.follower import Follower
from tidings.routing.clients.tagging.part_sender import Hander
from tidings.routing.protocol import messages as m
from tidings.routing.protocol.times import Times

Sent = list[tuple[Any, m.Message]]


class Committed(msgspec.Struct):
    """A part in the outbox. It may be tagged again, but its rows stay."""

    batch: int
    part: int
    last: bool
    payloads: list[bytes]
    life: int = 0
    version: int = 0
    tags: list[list[int]] = []


class Pipeline:
    """The payload of a row begins with its point."""

    def __init__(self, name: str, root: str, times: Times, chance: random.Random) -> None:
        self.name = name
        self.root = root
        self.times = times
        self.chance = chance
        self.outbox: list[Committed] = []
        self.batch = -1
        self.waiting: deque[list[bytes]] = deque()  # batches that are not begun yet
        self.mirror: dict[int, frozenset[int]] = {}
        self.life = self.version = 0
        self.stopped = ""  # the life of the channel is another
        self.tagged: dict[bytes, int] = {}  # the versions at which rows were first tagged
        self.retagged = self.repeated = 0
        self.suggested = self.outdated = 0
        self._request = 0
        self._follower: Follower | None = None
        self._hander = Hander()
        self._next = 0  # the next part of the outbox to offer
        self._asked = 0.0

    def begin_batch(self, payloads: Sequence[bytes], now: float) -> Sent:
        self.waiting.append([*payloads])
        return self._go_on(now)

    def crash(self, now: float) -> Sent:
        """Its process dies. It has forgotten what was acknowledged lately, and what it mirrored."""
        done = self._next - len(self._hander)
        self._follower, self._hander = None, Hander()
        self.mirror, self.life, self.version = {}, 0, 0
        self._next = self.chance.randrange(max(0, done - 9), done + 1)
        self.repeated += done - self._next
        return self._go_on(now)

    @property
    def is_idle(self) -> bool:
        done = not self.waiting and self._next == len(self.outbox) and not len(self._hander)
        return bool(self.stopped) or (done and self._follower is None)

    def suggest(self, sets: Sequence[frozenset[int]]) -> Sent:
        """What a preprocessor does: find the places of sets among the nodes of its version, and
        among each other."""
        filters, mirror = [], dict(self.mirror)
        for at, points in enumerate(sets):
            over = {node: one for node, one in mirror.items() if one > points}
            under = {node: one for node, one in mirror.items() if one < points}
            above = [n for n, one in over.items() if not any(x < one for x in over.values())]
            below = [n for n, one in under.items() if not any(x > one for x in under.values())]
            what = bytes(sorted(points))
            filters.append(m.Suggestion(what, bytes(16), tuple(above), tuple(below)))
            mirror[m.WITHIN + at] = points
        self._request += 1000
        question = m.Suggest(self._request, self.life, self.version, tuple(filters))
        return [(self.root, question)] if self.life else []

    def receive(self, message: m.Message, now: float) -> Sent:
        if isinstance(message, m.Suggested):
            self.suggested += sum(map(bool, message.nodes))
            self.outdated += "too old" in message.refusal
            return []
        if self._follower is not None and self._follower.receive(message):
            self._asked = now
            changed = self._follower.changed
            if changed is None:
                assert not self._follower.refusal
                return [(self.root, self._follower.question)]
            self._follower = None
            self._mirror(changed)
            self._tag(now)
        elif self._hander.receive(message):
            self._asked = now
            refused = self._hander.refused
            if refused is not None and not refused.later:
                return self._take_refusal(refused, now)
        return self._go_on(now)

    def tick(self, now: float) -> Sent:
        if now - self._asked < self.times.retry or self.stopped:
            return []
        self._asked = now
        if self._follower is not None:
            return [(self.root, self._follower.question)]
        return [(self.root, part) for part in self._hander.again()]

    # -- internals -----------------------------------------------------------------------------

    def _go_on(self, now: float) -> Sent:
        """Hand over what is committed; then the next batch asks for the latest version."""
        sent: Sent = []
        if self.stopped or self._follower is not None:
            return sent
        while self._hander.has_room and self._next < len(self.outbox):
            sent.append((self.root, self._hander.offer(self._message(self.outbox[self._next]))))
            self._next += 1
            self._asked = now
        if not len(self._hander) and self.waiting:
            sent += self._follow(now)
        return sent

    def _follow(self, now: float) -> Sent:
        self._request += 1000
        self._asked = now
        self._follower = Follower(m.Follow(self._request, self.version, self.life))
        return [(self.root, self._follower.question)]

    def _mirror(self, changed: m.Changed) -> None:
        if self.life and self.outbox and changed.life != self.life:
            self.stopped = "another life"
        if changed.whole:
            self.mirror = {}
        for _, node, text in changed.changes:
            if text is None:
                self.mirror.pop(node, None)
            else:
                self.mirror[node] = frozenset(bytes.fromhex(text))
        self.life, self.version = changed.life, changed.version

    def _tag(self, now: float) -> None:
        """Commit the next batch, or tag again what was refused."""
        if self._next < len(self.outbox):
            for part in self.outbox[self._next :]:
                self._tag_part(part)
                self.retagged += 1
            return
        rows = [row for row in self.waiting.popleft() if self._lowest(row[0])]
        self.batch += 1
        size = self.chance.randrange(1, 6)
        parts = [rows[at : at + size] for at in range(0, len(rows), size)] or [[]]
        for number, some in enumerate(parts):
            part = Committed(self.batch, number, number + 1 == len(parts), some)
            self._tag_part(part)
            self.outbox.append(part)

    def _tag_part(self, part: Committed) -> None:
        part.life, part.version = self.life, self.version
        part.tags = [self._lowest(row[0]) for row in part.payloads]
        for row in part.payloads:
            self.tagged.setdefault(row, self.version)  # some may be taken with the first tag

    def _lowest(self, point: int) -> list[int]:
        there = {node: points for node, points in self.mirror.items() if point in points}
        return sorted(
            node for node, points in there.items()
            if not any(other < points for other in there.values())
        )  # fmt: skip

    def _take_refusal(self, refused: m.Taken, now: float) -> Sent:
        if not refused.version:
            self.stopped = refused.refusal
            return []
        first = next(
            at for at, part in enumerate(self.outbox)
            if (part.batch, part.part) == (refused.batch, refused.part)
        )  # fmt: skip
        self._next, self._hander = first, Hander()
        return self._follow(now)

    def _message(self, part: Committed) -> m.HandOver:
        def packed(numbers: Sequence[int]) -> bytes:
            return np.array(numbers, "<i8").tobytes()

        def starts(sizes: Sequence[int]) -> bytes:
            return packed([0, *np.cumsum(sizes, dtype=np.int64).tolist()])

        return m.HandOver(
            self.name, part.batch, part.part, part.last, part.life, part.version,
            starts([len(tag) for tag in part.tags]), packed([n for tag in part.tags for n in tag]),
            starts([len(row) for row in part.payloads]), b"".join(part.payloads),
        )  # fmt: skip
