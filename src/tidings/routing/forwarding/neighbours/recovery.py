"""Notifications that somebody missed and asks for: how many are looked for and sent at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tidings.routing.forwarding.cache import Cache
from tidings.routing.forwarding.neighbours.charges import Charges
from tidings.routing.forwarding.neighbours.context import Context, Name
from tidings.routing.forwarding.neighbours.questions import Questions
from tidings.routing.protocol import messages as m

MOST_NUMBERS = 4000  # that are looked for at once: well-behaved subscribers ask for fewer
CHUNK = 64  # notifications of one answer,
CHUNK_BYTES = 512 << 10  # and bytes of their payloads and marks: a router does nothing else
MARK_BYTES = 32  # meanwhile; a mark counts as so many


class Recovery:
    """What one machine answers from its cache."""

    def __init__(
        self, context: Context, charges: Charges, questions: Questions, cache: Cache
    ) -> None:
        self._context = context
        self._charges = charges
        self._questions = questions
        self._cache = cache

    def answer(
        self, sender: Name, message: m.Recover, here: list[m.Range], elsewhere: list[m.Range]
    ) -> m.Recover | None:
        """Send what the cache has of `here`; the question for the rest and for `elsewhere`, to be
        passed on above."""
        context, request = self._context, message.request
        found, rest = self._cache.find(here, context.limits.answer_bytes)
        rest += elsewhere
        self._charges.charge(sender, len(message.ranges) + count_entries(found))
        self.send(sender, request, found)
        if not rest:
            context.send(sender, m.Settled(context.epoch, request))
            return None
        number = self._questions.add(sender, request)
        if number is None:
            return None
        return m.Recover(context.epoch, number, tuple(rest[: m.MOST_RANGES]))

    def send(self, to: Name, request: int, found: Iterable[m.Notification]) -> None:
        for answer in split_into_answers(self._context.epoch, request, found):
            self._context.send(to, answer)


def bound_ranges(ranges: Iterable[m.Range], most: int = MOST_NUMBERS) -> list[m.Range]:
    """Ranges without overlaps, with at most so many numbers in all."""
    found: list[m.Range] = []
    for node, first, last in sorted(ranges):
        if found and found[-1].node == node:
            first = max(first, found[-1].last + 1)
        last = min(last, first + most - 1)
        if first <= last:
            found.append(m.Range(node, first, last))
            most -= last - first + 1
    return found


def count_entries(found: Iterable[m.Notification]) -> int:
    """What it costs to send notifications again: those with many marks cost more."""
    return sum(1 + 2 * len(one.marks) for one in found)


def split_into_answers(
    epoch: int, request: int, found: Iterable[m.Notification]
) -> Iterator[m.Recovered]:
    """The notifications that a question found, in messages that fit into frames."""
    part: list[m.Notification] = []
    size = 0
    for one in found:
        more = len(one.payload) + MARK_BYTES * len(one.marks)
        if part and (len(part) == CHUNK or size + more > CHUNK_BYTES):
            yield m.Recovered(epoch, request, tuple(part))
            part, size = [], 0
        part.append(one)
        size += more
    if part:
        yield m.Recovered(epoch, request, tuple(part))
