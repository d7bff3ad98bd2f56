"""A subscriber that returns after missing many notifications: it gets everything in the order of
serials, and holds little of it at a time."""

from __future__ import annotations

import random
from collections import deque

import msgspec
import pytest
from tests.repeats import rounds, runs

from tidings.routing.clients.delivering.ordering import find_horizon
from tidings.routing.clients.node_stream import LEAST_NUMBERS
from tidings.routing.clients.subscriber import Delivery, Lost, Subscriber
from tidings.routing.protocol import messages as m
from tidings.routing.protocol.digests import digest
from tidings.routing.protocol.times import Times

NODE = 1


class Root:
    """What a rendezvous point has, and how it answers: by looking at all of it."""

    def __init__(self, chance: random.Random, nodes: int, many: int) -> None:
        self.chance = chance
        self.nodes = nodes
        self.all: list[m.Notification] = []
        self.counts: dict[int, int] = {}
        for _ in range(many):
            self.publish()

    def publish(self) -> m.Notification:
        lowest = self.chance.sample(
            range(1, self.nodes + 1), min(self.nodes, self.chance.choice((1, 1, 2)))
        )
        for node in lowest:
            self.counts[node] = self.counts.get(node, 0) + 1
        marks = tuple(m.Mark(node, self.counts[node], (NODE,)) for node in lowest)
        serial = len(self.all) + 1
        self.all.append(m.Notification(1, serial, marks, b"%d" % serial, "p", serial))
        return self.all[-1]

    def answer(self, message: m.Message) -> list[m.Message]:
        many = len(self.all)
        if isinstance(message, m.Count):
            return [m.Counted(1, message.request, NODE, many, many, dict(self.counts))]
        if not isinstance(message, m.Recover):
            return []
        asked = {(node, number) for node, first, last in message.ranges
                 for number in range(first, last + 1)}  # fmt: skip
        found = [one for one in self.all if asked & {mark[:2] for mark in one.marks}]
        if self.chance.random() < 0.2:  # it has sent enough for now
            found = found[: self.chance.randrange(len(found)) + 1]
        parts = [tuple(found[at : at + 7]) for at in range(0, len(found), 7)]
        return [*(m.Recovered(1, message.request, part) for part in parts),
                m.Settled(1, message.request)]  # fmt: skip


@pytest.mark.parametrize("round_", runs(2, 20))
def test_much_that_was_missed_comes_in_order(seed: int, round_: int) -> None:
    """While others are published, some of which are dropped on the way, and answers take long."""
    chance = random.Random(f"{seed} {round_}")
    nodes, most = chance.choice((1, 2, 6)), chance.choice((5, 50, 10_000))
    drop, rate, delay = (
        chance.choice((0, 0.1)),
        chance.choice((0.02, 1, 10)),
        chance.choice((0, 6)),
    )
    root = Root(chance, nodes, chance.randrange(1200))
    one = Subscriber("s", "r", b"x", Times(), most, ordered=True)
    begin(one)
    asked: list[tuple[float, m.Message]] = [(0.0, m.Count(1, 2, NODE, 0))]
    # of each node, what was asked for, and what an earlier question brings
    bound = most + 2 * nodes * LEAST_NUMBERS
    read: list[object] = []
    steps = most_held = 0
    while len(read) < len(root.all):
        steps += 1
        assert steps < 50_000, (round_, len(read), len(root.all))
        now = steps / 4
        coming: list[m.Message] = []
        while chance.random() < rate / (1 + rate) and len(root.all) < 3000:
            coming.append(root.publish())
            if chance.random() < drop:
                coming[-1] = m.Skipped()
        coming.append(m.Beat(1, len(root.all), {}, digest((NODE,)), len(root.all)))
        for when, question in asked:
            coming += root.answer(question) if when <= now else ()
        asked = [(when, question) for when, question in asked if when > now]
        sent = [what for message in coming for what in one.receive(message, now)]
        asked += [(now + delay / 4, what) for _, what in sent + one.tick(now)]
        assert len(one.inbox) <= bound
        assert one.stream.order is not None
        most_held = max(most_held, len(one.stream.order))
        some = chance.randrange(len(one.inbox) + 1)
        read += [one.inbox.popleft() for _ in range(some)]
    assert [what.serial for what in read if isinstance(what, Delivery)] == [
        *range(1, len(root.all) + 1)
    ]
    assert not [what for what in read if isinstance(what, Lost)]
    assert most_held <= bound, (round_, nodes, most)


@pytest.mark.parametrize("round_", runs(1, 6))
def test_much_is_caught_up_with_few_questions(seed: int, round_: int) -> None:
    """More is missing, and more comes meanwhile, than there is room for. Answers take longer than
    questions are repeated."""
    chance = random.Random(f"{seed} {round_}")
    nodes, delay = chance.choice((1, 3, 9)), chance.choice((0.3, 2.0, 8.0))
    many, most = 12_000, 1000
    root = Root(chance, nodes, many)
    where = {mark[:2]: one for one in root.all for mark in one.marks}
    one = Subscriber("s", "r", b"x", Times(retry=0.5), most, ordered=True)
    begin(one)
    asked: deque[tuple[float, m.Message]] = deque([(0.0, m.Count(1, 2, NODE, 0))])
    read: list[object] = []
    now, brought = 0.0, 0
    while len(read) < len(root.all):
        now += 0.1
        assert now < 5000, (round_, len(read), len(root.all))
        coming: list[m.Message] = []
        for _ in range(100 if len(root.all) < 2 * many else 0):
            coming.append(root.publish())
            where.update({mark[:2]: root.all[-1] for mark in root.all[-1].marks})
        coming.append(m.Beat(1, len(root.all), {}, digest((NODE,)), len(root.all)))
        while asked and asked[0][0] <= now:
            _, question = asked.popleft()
            if isinstance(question, m.Recover):
                found = {where[node, number].serial for node, first, last in question.ranges
                         for number in range(first, last + 1)}  # fmt: skip
                part = tuple(root.all[serial - 1] for serial in sorted(found))
                coming += [
                    m.Recovered(1, question.request, part),
                    m.Settled(1, question.request),
                ]
                brought += 1
            else:
                coming += root.answer(question)
        sent = [what for message in coming for what in one.receive(message, now)]
        asked += [(now + delay, what) for _, what in sent + one.tick(now)]
        read += [one.inbox.popleft() for _ in range(len(one.inbox))]
    assert [what.serial for what in read if isinstance(what, Delivery)] == [
        *range(1, len(root.all) + 1)
    ]
    # each can bring most // 2; some are repeated before their answer comes
    assert brought < 600, (round_, nodes, delay, brought)


def test_the_horizon_is_where_the_expected_numbers_are(seed: int) -> None:
    for round_ in range(200):
        chance = random.Random(f"{seed} {round_}")
        starts = sorted(chance.choices(range(1000), k=chance.randrange(1, 9)))
        densities = [chance.uniform(0.001, 3) for _ in starts]
        room = chance.randrange(1, 3000)
        horizon = find_horizon(starts, densities, room)
        expected = sum(max(0.0, horizon - start) * density
                       for start, density in zip(starts, densities, strict=True))  # fmt: skip
        assert abs(expected - room) < 1e-6 * room


def begin(one: Subscriber) -> None:
    one.start(0)
    one.receive(m.Answer(1, 1, NODE, 0, 0, {}), 0)
    one.receive(m.Setup(1, NODE, (), (), 0, 0), 0)


def test_one_that_comes_again_with_another_mark_is_not_lost() -> None:
    """It was handed out when a beat said that nothing is missing. Then a late answer names a number
    that it has at another node, and a router has a copy of it with that number alone."""
    one = Subscriber("s", "r", b"x", Times(), ordered=True)
    begin(one)
    one.receive(m.Counted(1, 2, NODE, 0, 0, {}), 0)
    low, lower = 20, 14
    last = m.Notification(1, 3, (m.Mark(low, 2, (NODE,)),), b"3", "p", 3)
    ((_, asked),) = one.receive(last, 1.0)
    assert isinstance(asked, m.Recover)
    marks = m.Mark(lower, 1, (lower,)), m.Mark(low, 1, (low,))
    first = m.Notification(1, 1, marks, b"1", "p", 1)
    one.receive(m.Recovered(1, asked.request, (first,)), 1.0)
    ((_, count),) = one.receive(m.Settled(1, asked.request), 1.0)
    assert isinstance(count, m.Count)
    one.receive(m.Beat(1, 3, {NODE: 2}, digest((NODE,)), 2), 1.0)
    assert [what.serial for what in one.inbox if isinstance(what, Delivery)] == [1, 3]
    ((_, again),) = one.receive(m.Counted(1, count.request, NODE, 3, 2, {low: 2, lower: 1}), 1.0)
    assert isinstance(again, m.Recover)
    part = msgspec.structs.replace(first, marks=marks[:1])
    one.receive(m.Recovered(1, again.request, (part,)), 1.0)
    one.receive(m.Settled(1, again.request), 1.0)
    assert len(one.inbox) == 2
    assert one.stream._tracker.is_complete()


def test_an_answer_says_nothing_about_what_is_in_doubt() -> None:
    """A link drops the third notification and says so. Then an answer brings the first one, and a
    beat says that nothing is missing up to the second: the fourth must still wait."""
    one = Subscriber("s", "r", b"x", Times(), ordered=True)
    begin(one)
    one.receive(m.Counted(1, 2, NODE, 0, 0, {}), 0)
    low, lower = 20, 14
    numbers = (low, 1), (low, 2), (lower, 1), (low, 3)
    first, second, third, fourth = (
        m.Notification(1, at, (m.Mark(*one, (NODE,)),), b"%d" % at, "p", at)
        for at, one in enumerate(numbers, 1)
    )
    ((_, asked),) = one.receive(second, 1.0)
    assert isinstance(asked, m.Recover)
    one.receive(m.Skipped(), 1.0)
    one.receive(m.Recovered(1, asked.request, (first,)), 1.0)
    one.receive(m.Settled(1, asked.request), 1.0)
    one.receive(fourth, 1.0)
    one.receive(m.Beat(1, 2, {NODE: 2}, digest((NODE,)), 2), 1.0)
    assert [what.serial for what in one.inbox if isinstance(what, Delivery)] == [1, 2]
    ((_, count),) = one.receive(m.Beat(1, 4, {NODE: 4}, digest((NODE,)), 4), 2.0)
    assert isinstance(count, m.Count)
    ((_, again),) = one.receive(m.Counted(1, count.request, NODE, 4, 4, {low: 3, lower: 1}), 2.0)
    assert isinstance(again, m.Recover)
    assert again.ranges == (m.Range(lower, 1, 1),)
    one.receive(m.Recovered(1, again.request, (third,)), 2.0)
    assert [what.serial for what in one.inbox if isinstance(what, Delivery)] == [1, 2, 3, 4]
    assert len(one.inbox) == 4


def test_a_beat_that_is_behind_says_nothing_about_what_is_in_doubt() -> None:
    """While a router joins another node above it, the third notification does not come that way.
    The beats of the router stay at the second one, which is all that they are about, until it has
    joined."""
    one = Subscriber("s", "r", b"x", Times(), ordered=True)
    begin(one)
    one.receive(m.Counted(1, 2, NODE, 0, 0, {}), 0)
    low, lower = 20, 14
    numbers = (low, 1), (low, 2), (lower, 1), (low, 3)
    first, second, third, fourth = (
        m.Notification(1, at, (m.Mark(*one, (NODE,)),), b"%d" % at, "p", at)
        for at, one in enumerate(numbers, 1)
    )
    one.receive(first, 1.0)
    one.receive(m.Skipped(), 1.0)
    one.receive(second, 1.0)
    one.receive(m.Beat(1, 2, {}, digest((NODE,)), 2, behind=True), 1.0)
    one.receive(fourth, 1.0)
    assert [what.serial for what in one.inbox if isinstance(what, Delivery)] == [1, 2]
    one.receive(m.Skipped(), 2.0)  # the router has joined
    ((_, count),) = one.receive(m.Beat(1, 4, {}, digest((NODE,)), 4), 2.0)
    assert isinstance(count, m.Count)
    ((_, asked),) = one.receive(m.Counted(1, count.request, NODE, 4, 4, {low: 3, lower: 1}), 2.0)
    assert isinstance(asked, m.Recover)
    one.receive(m.Recovered(1, asked.request, (third,)), 2.0)
    assert [what.serial for what in one.inbox if isinstance(what, Delivery)] == [1, 2, 3, 4]
    assert len(one.inbox) == 4


def test_what_the_root_still_has_is_never_given_up(seed: int) -> None:
    """The application reads now and then, so answers often find no room; and they take long, longer
    than it takes until a gap would be given up."""
    for round_ in rounds(10, 30):
        chance = random.Random(f"{seed} {round_} slow")
        most, delay = chance.choice((1, 3, 20)), chance.uniform(1.0, 12.0)
        root = Root(chance, chance.choice((1, 2, 4)), chance.randrange(10, 60))
        one = Subscriber("s", "r", b"x", Times(), most, ordered=True)
        begin(one)
        asked: list[tuple[float, m.Message]] = [(0.0, m.Count(1, 2, NODE, 0))]
        read: list[object] = []
        now, read_at = 0.0, 0.0
        while len(read) < len(root.all):
            now += 0.25
            assert now < 20_000, (round_, len(read), len(root.all))
            coming: list[m.Message] = []
            if chance.random() < 0.1 and len(root.all) < 150:
                coming.append(root.publish() if chance.random() < 0.7 else m.Skipped())
            coming.append(m.Beat(1, len(root.all), {}, digest((NODE,)), len(root.all)))
            for when, question in asked:
                coming += root.answer(question) if when <= now else ()
            asked = [(when, question) for when, question in asked if when > now]
            sent = [what for message in coming for what in one.receive(message, now)]
            asked += [(now + delay, what) for _, what in sent + one.tick(now)]
            if now >= read_at:
                read_at = now + chance.choice((0.25, 3.0, 15.0))
                read += [one.inbox.popleft() for _ in range(len(one.inbox))]
                lost = [what for what in read if isinstance(what, Lost)]
                assert not lost, (round_, most, delay)
        assert [what.serial for what in read if isinstance(what, Delivery)] == [
            *range(1, len(root.all) + 1)
        ]
