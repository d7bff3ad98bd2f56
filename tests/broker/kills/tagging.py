"""A pipeline without Spark: it follows a channel, tags rows with a matcher of its own, and hands
them over in parts, whatever happens to the rendezvous point. The matcher is `Filter.matches` alone.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator

import msgspec
from tests.broker.parts import make_part

from tidings.channel import Changes, ChannelLink, Part
from tidings.filters import Filter, parse

ROWS = 200  # of a batch, at most


class Row(msgspec.Struct, frozen=True):
    number: int
    event: dict[str, int]
    begun: float  # when its batch asked for the latest version

    @property
    def payload(self) -> bytes:
        return b"%d" % self.number


class Tagging(threading.Thread):
    """Hands over batch after batch until it is told to stop."""

    def __init__(self, address: str, seed: int) -> None:
        super().__init__(name="tagging")
        self.link = ChannelLink(address, timeout=120)
        self.chance = random.Random(f"{seed} tagging")
        self.rows: list[Row] = []  # that matched something, in the order of the hand-over
        self.batches = self.parts = self.repeated = 0
        self.problem: BaseException | None = None
        self._stop_it = threading.Event()
        self._mirror: dict[int, Filter] = {}
        self._covers: dict[tuple[int, int], bool] = {}
        self._known = Changes(0, 0, True, ())

    def run(self) -> None:
        try:
            while not self._stop_it.is_set():
                self._hand_over_batch()
                time.sleep(self.chance.uniform(0, 0.05))
        except BaseException as problem:
            self.problem = problem
        finally:
            self.link.close()

    def stop(self) -> None:
        self._stop_it.set()
        self.join()
        if self.problem is not None:
            raise self.problem

    def _hand_over_batch(self) -> None:
        begun = time.monotonic()
        self._follow()
        events = [{"k": self.chance.randrange(100), "p": self.chance.randrange(4)}
                  for _ in range(self.chance.randrange(ROWS))]  # fmt: skip
        tagged = [(event, self._tag(event)) for event in events]
        rows = []
        for event, tag in tagged:
            if tag:
                self.rows.append(Row(len(self.rows), event, begun))
                rows.append((tag, self.rows[-1].payload))
        size = self.chance.randrange(5, 60)
        pieces = [rows[at : at + size] for at in range(0, len(rows), size)] or [[]]
        parts = [
            make_part("out", (self.batches, number), piece, self._known.life, self._known.version,
                      last=number + 1 == len(pieces))
            for number, piece in enumerate(pieces)
        ]  # fmt: skip
        self.link.hand_over(self._some_twice(parts))
        self.batches += 1
        self.parts += len(parts)

    def _some_twice(self, parts: list[Part]) -> Iterator[Part]:
        """As after a crash of its own: from an earlier part on once more."""
        yield from parts
        if self.chance.random() < 0.2:
            again = parts[self.chance.randrange(len(parts)) :]
            self.repeated += len(again)
            yield from again

    def _follow(self) -> None:
        news = self.link.changes(self._known.version, self._known.life)
        assert self._known.life in (0, news.life), "there was a break"
        if news.whole:
            self._mirror.clear()
        for change in news.changes:
            if change.filter is None:
                self._mirror.pop(change.node, None)
            else:
                self._mirror[change.node] = parse(change.filter)
        self._known = news

    def _tag(self, event: dict[str, int]) -> list[int]:
        """The lowest nodes that match: those that cover no other one."""
        there = [node for node, one in sorted(self._mirror.items()) if one.matches(event)]
        return [
            node for node in there
            if not any(node != other and self._is_above(node, other) for other in there)
        ]  # fmt: skip

    def _is_above(self, upper: int, lower: int) -> bool:
        """Does one cover the other? Of two that cover each other, the higher number is above."""
        key = upper, lower
        if key not in self._covers:
            one, other = self._mirror[upper], self._mirror[lower]
            both = one.covers(other) and other.covers(one)
            self._covers[key] = upper > lower if both else one.covers(other)
        return self._covers[key]
