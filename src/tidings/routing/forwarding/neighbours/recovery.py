"""Answers requests for missed notifications, within a limit on the size of an answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tidings.routing.forwarding.cache import Cache
from tidings.routing.forwarding.neighbours.context import Context, Name
from tidings.routing.forwarding.neighbours.node_charges import Charges
from tidings.routing.forwarding.neighbours.open_questions import Questions
from tidings.routing.protocol import messages as m

MOST_NUMBERS = 4000  # numbers looked up for one request; well-behaved subscribers ask for fewer
CHUNK = 64  # notifications in one answer
CHUNK_BYTES = 512 << 10  # bytes of payloads and marks in one answer, which is encoded as a whole
MARK_BYTES = 32  # each mark counts as this many bytes towards CHUNK_BYTES


class Recovery:
    """Answers from the cache of one state machine."""

    def __init__(
        self, context: Context, charges: Charges, questions: Questions, cache: Cache
    ) -> None:
        self._context = context
        self._charges = charges
        self._questions = questions
        self._cache = cache

    def answer(
        self,
        sender: Name,
        message: m.Recover,
        here: list[m.Range],
        elsewhere: list[m.Range],
        within: m.Within = (),
    ) -> m.Recover | None:
        """Of the notifications in the ranges `here`, send those that the cache has. Return the
        question to pass on, if any: it asks for the rest and for `elsewhere`, with the limits
        `within`."""
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
        return m.Recover(context.epoch, number, tuple(rest[: m.MOST_RANGES]), within)

    def send(self, to: Name, request: int, found: Iterable[m.Notification]) -> None:
        for answer in split_into_answers(self._context.epoch, request, found):
            self._context.send(to, answer)


def bound_ranges(ranges: Iterable[m.Range], most: int = MOST_NUMBERS) -> list[m.Range]:
    """Cut ranges so that they do not overlap, and have at most `most` numbers in total."""
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
    """What sending notifications again costs, counted in entries of an answer. Each mark adds to
    the cost."""
    return sum(1 + 2 * len(one.marks) for one in found)


def split_into_answers(
    epoch: int, request: int, found: Iterable[m.Notification]
) -> Iterator[m.Recovered]:
    """Split the notifications of an answer into messages that fit into frames."""
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
