"""Subscribers one by one: what they ask for."""

from __future__ import annotations

from tidings.routing.clients import Interrupted, Phase, Resumed
from tidings.routing.clients.subscriber import MOST_NUMBERS, Lost, Subscriber, Told
from tidings.routing.protocol import messages as m
from tidings.routing.protocol.digests import digest
from tidings.routing.protocol.lineage import Break
from tidings.routing.protocol.times import Times


def joined() -> Subscriber:
    one = Subscriber("s", "r", b"x", Times(retry=3))
    one.start(0)
    one.receive(m.Answer(1, 1, 7, 0, 0, {}), 0)
    one.receive(m.Setup(1, 7, (), (), 0, 0), 0)
    return one


def recovers(sent: list[tuple[object, m.Message]]) -> list[m.Recover]:
    return [message for _, message in sent if isinstance(message, m.Recover)]


def only(sent: list[tuple[object, m.Message]]) -> m.Recover:
    (message,) = recovers(sent)
    return message


def test_much_is_asked_for_part_by_part() -> None:
    one = joined()
    last = 2 * MOST_NUMBERS + 5
    recover = only(one.receive(m.Counted(1, 2, 7, last, last, {7: last}), 0))
    asked = []
    now = 0.0
    while True:
        ((node, first, upto),) = recover.ranges
        asked.append((first, upto))
        for number in range(first, upto + 1):
            now += 0.1
            mark = m.Mark(node, number, (node,))
            part = (m.Notification(1, number, (mark,), b"", "p", number),)
            one.receive(m.Recovered(1, recover.request, part), now)
        assert not recovers(one.tick(now + 1))  # what is coming is not asked for again
        sent = one.receive(m.Settled(1, recover.request), now)
        if isinstance(sent[0][1], m.Count):
            break
        recover = only(sent)
    assert asked == [(1, MOST_NUMBERS), (MOST_NUMBERS + 1, 2 * MOST_NUMBERS),
                     (2 * MOST_NUMBERS + 1, last)]  # fmt: skip
    told = [what.serial for what in one.inbox if isinstance(what, Told)]
    assert told == list(range(1, last + 1))


def test_what_is_not_there_yet_is_not_asked_for_at_once() -> None:
    one = joined()
    recover = only(one.receive(m.Counted(1, 2, 7, 9, 9, {7: 9}), 0))
    assert one.receive(m.Settled(1, recover.request), 0) == []
    assert only(one.tick(4)).ranges == recover.ranges


def test_what_nobody_can_count_any_more_is_noticed() -> None:
    """The node of two notifications was forgotten with its numbers; the total has them."""
    one = joined()
    one.receive(m.Notification(1, 4, (m.Mark(7, 1, (7,)),), b"x", "p", 4), 0)
    one.receive(m.Counted(1, 2, 7, 9, 3, {7: 1}), 0)
    assert [what for what in one.inbox if not isinstance(what, Told)] == [Lost(2)]
    assert one.complete == 9


def test_a_full_inbox_is_filled_when_there_is_room() -> None:
    one = joined()
    one.most = 3

    def notification(number: int) -> m.Notification:
        return m.Notification(1, number, (m.Mark(7, number, (7,)),), b"", "p", number)

    for number in range(1, 9):
        assert not recovers(one.receive(notification(number), 0))
    assert [told.serial for told in one.inbox if isinstance(told, Told)] == [1, 2, 3]
    beat = m.Beat(1, 8, {}, digest((7,)), 8)
    one.receive(m.Counted(1, 2, 7, 0, 0, {}), 0)
    assert one.receive(beat, 1) == []  # what could it do about it
    assert one.complete == 0
    read: list[object] = []
    now = 2.0
    while len(read) < 8:
        read += [one.inbox.popleft() for _ in range(len(one.inbox))]
        sent = one.receive(beat, now) or one.tick(now)
        now += 4
        for _, message in sent:
            if isinstance(message, m.Count):
                sent = one.receive(m.Counted(1, message.request, 7, 8, 8, {7: 8}), now)
        for recover in recovers(sent):
            ((_, first, last),) = recover.ranges
            found = tuple(map(notification, range(first, last + 1)))
            one.receive(m.Recovered(1, recover.request, found), now)
            one.receive(m.Settled(1, recover.request), now)
            assert len(one.inbox) <= 3
    assert [told.serial for told in read if isinstance(told, Told)] == [*range(1, 9)]


def ordered() -> Subscriber:
    one = Subscriber("s", "r", b"x", Times(retry=3), ordered=True)
    one.start(0)
    one.receive(m.Answer(1, 1, 7, 0, 0, {}), 0)
    one.receive(m.Setup(1, 7, (), (), 0, 0), 0)
    one.receive(m.Counted(1, 2, 7, 0, 0, {}), 0)
    return one


def numbered(serial: int, number: int, node: int = 7) -> m.Notification:
    mark = m.Mark(node, number, (7,))
    return m.Notification(1, serial, (mark,), b"%d" % serial, "p", serial)


def serials(one: Subscriber) -> list[object]:
    return [what.serial if isinstance(what, Told) else what for what in one.inbox]


def test_a_gap_holds_back_what_follows() -> None:
    one = ordered()
    one.receive(numbered(1, 1), 0)
    recover = only(one.receive(numbered(3, 3), 0))
    one.receive(numbered(4, 1, node=9), 0)
    assert serials(one) == [1]
    one.receive(m.Recovered(1, recover.request, (numbered(2, 2),)), 1)
    ((_, count),) = one.receive(m.Settled(1, recover.request), 1)
    assert isinstance(count, m.Count)
    assert serials(one) == [1]  # until it is sure that this was all
    one.receive(m.Counted(1, count.request, 7, 4, 4, {7: 3, 9: 1}), 1)
    assert serials(one) == [1, 2, 3, 4]


def test_a_gap_that_stays_is_lost_after_five_seconds() -> None:
    one = ordered()
    one.receive(numbered(1, 1), 0)
    one.receive(numbered(4, 4), 0)
    for now in range(1, 6):
        one.receive(m.Beat(1, 4, {}, digest((7,)), 4), now)
        one.tick(now)
        assert serials(one) == [1]
    one.receive(m.Beat(1, 4, {}, digest((7,)), 4), 5.2)
    one.tick(5.2)
    assert serials(one) == [1, Lost(2), 4]
    one.receive(numbered(2, 2), 6)  # too late
    assert serials(one) == [1, Lost(2), 4]


def test_a_gap_waits_while_nobody_is_heard() -> None:
    one = ordered()
    one.receive(numbered(2, 2), 0)
    for now in range(1, 20):
        one.tick(now)
    assert serials(one) == []


def test_in_doubt_the_next_beat_tells() -> None:
    """Something at another node was dropped before 3, and whoever dropped it says so."""
    one = ordered()
    one.receive(numbered(1, 1), 0)
    one.receive(m.Skipped(), 0)
    one.receive(numbered(3, 2), 0)
    assert serials(one) == [1]
    ((_, count),) = one.receive(m.Beat(1, 3, {}, digest((7,)), 3), 1)
    assert isinstance(count, m.Count)
    recover = only(one.receive(m.Counted(1, count.request, 7, 3, 3, {7: 2, 9: 1}), 1))
    one.receive(m.Recovered(1, recover.request, (numbered(2, 1, node=9),)), 1)
    ((_, count),) = one.receive(m.Settled(1, recover.request), 1)
    assert isinstance(count, m.Count)
    one.receive(m.Counted(1, count.request, 7, 3, 3, {7: 2, 9: 1}), 1)
    assert serials(one) == [1, 2, 3]
    one.receive(m.Skipped(), 2)
    one.receive(numbered(4, 3), 2)
    assert serials(one) == [1, 2, 3]
    one.receive(m.Beat(1, 4, {}, digest((7,)), 4), 3)  # nothing was missed
    assert serials(one) == [1, 2, 3, 4]


def test_without_an_order_nothing_waits() -> None:
    one = joined()
    one.receive(numbered(3, 3), 0)
    one.receive(m.Skipped(), 0)
    one.receive(numbered(4, 4), 0)
    assert serials(one) == [3, 4]


def test_a_fast_notification_has_no_numbers() -> None:
    one = ordered()
    one.receive(numbered(1, 1), 0)
    for _ in range(2):  # nothing tells them apart
        one.receive(m.Notification(1, 0, (m.Mark(9, 0, (7,)),), b"f", "p", 0), 0)
    other = m.Notification(1, 0, (m.Mark(9, 0, (8,)),), b"f", "p", 0)
    assert one.receive(other, 0) == []  # that of another subscription
    assert serials(one) == [1, 0, 0]
    one.receive(m.Beat(1, 1, {}, digest((7,)), 1), 1)
    assert one.complete == 1


def test_a_fast_subscription_asks_for_nothing() -> None:
    one = Subscriber("s", "r", b"x", Times(retry=3), ordered=True, fast=True)
    one.start(0)
    one.receive(m.Answer(1, 1, 7, 0, 0, {}), 0)
    assert one.receive(m.Setup(1, 7, (), (), 0, 0), 0) == []
    for serial in (5, 3, 4):
        assert one.receive(numbered(serial, serial), 0) == []
    assert one.receive(m.Beat(1, 9, {}, digest((7,)), 9), 1) == []
    assert serials(one) == [5, 3, 4]
    assert one.complete == 9  # nothing is kept for it


def test_a_long_interruption_ends_a_subscription() -> None:
    one = Subscriber("s", "r", b"x", drop_after=30)
    one.start(0)
    one.receive(m.Answer(1, 1, 7, 0, 0, {}), 0)
    one.receive(m.Setup(1, 7, (), (), 0, 0), 0)
    one.interrupt("gone", 10)
    one.tick(40)
    assert len(one.inbox) == 1
    assert m.Unsubscribe(1, (7,)) in [message for _, message in one.tick(41)]
    assert one.phase is Phase.STOPPED
    assert list(one.inbox) == [
        Interrupted("gone"),
        Break("the subscription was dropped after an interruption of more than 30 seconds"),
    ]


def test_an_interruption_that_is_over() -> None:
    one = joined()
    one.interrupt("gone", 10)
    one.interrupt("gone again", 11)
    one.receive(m.Beat(1, 0, {}, digest((7,)), 0), 13)
    assert list(one.inbox) == [Interrupted("gone"), Resumed(3)]
