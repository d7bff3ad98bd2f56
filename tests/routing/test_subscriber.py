"""Subscribers one by one: what they ask for."""

from __future__ import annotations

from tidings.routing.clients import Interrupted, Phase, Resumed
from tidings.routing.clients.node_stream import MOST_NUMBERS
from tidings.routing.clients.subscriber import Delivery, Lost, Subscriber
from tidings.routing.protocol import messages as m
from tidings.routing.protocol.digests import digest
from tidings.routing.protocol.lineage import Break
from tidings.routing.protocol.times import Times


def joined(most: int = 1 << 62) -> Subscriber:
    one = Subscriber("s", "r", b"x", Times(retry=3), most)
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
    told = [what.serial for what in one.inbox if isinstance(what, Delivery)]
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
    assert [what for what in one.inbox if not isinstance(what, Delivery)] == [Lost(2)]
    assert one.complete == 9


def test_a_full_inbox_is_filled_when_there_is_room() -> None:
    one = joined(most=3)

    def notification(number: int) -> m.Notification:
        return m.Notification(1, number, (m.Mark(7, number, (7,)),), b"", "p", number)

    for number in range(1, 9):
        assert not recovers(one.receive(notification(number), 0))
    assert [told.serial for told in one.inbox if isinstance(told, Delivery)] == [1, 2, 3]
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
    assert [told.serial for told in read if isinstance(told, Delivery)] == [*range(1, 9)]


def ordered(most: int = 1 << 62) -> Subscriber:
    one = Subscriber("s", "r", b"x", Times(retry=3), most, ordered=True)
    one.start(0)
    one.receive(m.Answer(1, 1, 7, 0, 0, {}), 0)
    one.receive(m.Setup(1, 7, (), (), 0, 0), 0)
    one.receive(m.Counted(1, 2, 7, 0, 0, {}), 0)
    return one


def numbered(serial: int, number: int, node: int = 7) -> m.Notification:
    mark = m.Mark(node, number, (7,))
    return m.Notification(1, serial, (mark,), b"%d" % serial, "p", serial)


def serials(one: Subscriber) -> list[object]:
    return [what.serial if isinstance(what, Delivery) else what for what in one.inbox]


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


def hear(one: Subscriber, now: float, serial: int = 4) -> list[tuple[object, m.Message]]:
    """A beat, and what is due at that time."""
    return one.receive(m.Beat(1, serial, {}, digest((7,)), serial), now) + one.tick(now)


def test_a_gap_that_two_answers_do_not_fill_is_lost_after_five_seconds() -> None:
    one = ordered()
    one.receive(numbered(1, 1), 0)
    recover = only(one.receive(numbered(4, 4), 0))
    assert one.receive(m.Settled(1, recover.request), 0) == []
    asked = []
    for now in range(1, 6):
        asked += recovers(hear(one, now))
        assert serials(one) == [1]
    (again,) = asked
    assert hear(one, 5.2) == []  # the second answer may bring it
    one.receive(m.Settled(1, again.request), 5.2)
    ((_, count),) = hear(one, 5.3)
    assert isinstance(count, m.Count)
    assert serials(one) == [1]  # the answer says how many notifications that were
    one.receive(m.Counted(1, count.request, 7, 4, 4, {7: 4}), 5.3)
    assert serials(one) == [1, Lost(2), 4]
    one.receive(numbered(2, 2), 6)  # too late
    assert serials(one) == [1, Lost(2), 4]


def test_a_gap_is_not_given_up_while_the_question_is_not_answered() -> None:
    """Beats are heard, but answers take long: what was asked for may still come."""
    one = ordered()
    one.receive(numbered(1, 1), 0)
    asked = [only(one.receive(numbered(4, 4), 0))]
    for now in range(1, 60):
        asked += recovers(hear(one, now))
        assert serials(one) == [1]
    assert len(asked) >= 5
    one.receive(m.Recovered(1, asked[-1].request, (numbered(2, 2), numbered(3, 3))), 60)
    ((_, count),) = one.receive(m.Settled(1, asked[-1].request), 60)
    assert isinstance(count, m.Count)
    one.receive(m.Counted(1, count.request, 7, 4, 4, {7: 4}), 60)
    assert serials(one) == [1, 2, 3, 4]


def test_only_what_was_asked_for_is_given_up() -> None:
    """There are more missing numbers than are asked for at once."""
    one = ordered()
    last = MOST_NUMBERS + 10
    recover = only(one.receive(numbered(last, last), 0))
    one.receive(m.Settled(1, recover.request), 0)
    sent = []
    for now in (1, 2, 3, 4, 5, 5.5):
        sent += hear(one, now, last)
        if len(one.stream._tracker.list_missing()) == 1 and now <= 5:
            one.receive(m.Settled(1, one.stream.questions.request), now)
    assert one.stream._tracker.list_missing() == [m.Range(7, MOST_NUMBERS + 1, last - 1)]
    assert recovers(sent)[-1].ranges == (m.Range(7, MOST_NUMBERS + 1, last - 1),)


def test_a_gap_waits_while_nobody_is_heard() -> None:
    one = ordered()
    recover = only(one.receive(numbered(2, 2), 0))
    one.receive(m.Settled(1, recover.request), 0)
    for now in range(1, 20):
        one.tick(now)
    for now in range(20, 26):  # the time of silence does not count
        assert serials(one) == []
        for recover in recovers(hear(one, now, 0)):
            one.receive(m.Settled(1, recover.request), now)
    for now in range(26, 30):
        for _, what in hear(one, now, 0):
            if isinstance(what, m.Recover):
                one.receive(m.Settled(1, what.request), now)
            elif isinstance(what, m.Count):
                one.receive(m.Counted(1, what.request, 7, 2, 2, {7: 2}), now)
    assert serials(one) == [Lost(1), 2]


def test_what_found_no_room_is_not_given_up() -> None:
    """The application reads after the answer came, and the next answers take long."""
    one = ordered(most=2)
    recover = only(one.receive(numbered(4, 4), 0))
    one.inbox.extend((Lost(1), Lost(1)))  # full
    found = numbered(1, 1), numbered(2, 2), numbered(3, 3)
    one.receive(m.Recovered(1, recover.request, found), 0.1)
    one.receive(m.Settled(1, recover.request), 0.1)
    one.inbox.clear()
    asked = [what for now in range(1, 40) for what in recovers(hear(one, now))]
    assert serials(one) == []
    one.receive(m.Recovered(1, asked[-1].request, found), 40)
    one.receive(m.Settled(1, asked[-1].request), 40)
    assert one.stream.order is not None
    assert not one.stream._tracker.list_missing()


def test_a_doubt_that_lasts_is_asked_about() -> None:
    """No beat tells whether anything is missing: nothing is given up."""
    one = ordered()
    one.receive(m.Skipped(), 0)
    one.receive(numbered(5, 1), 0)
    counts = []
    for now in range(1, 12):
        counts += [what for _, what in hear(one, now, 0) if isinstance(what, m.Count)]
        assert serials(one) == []
    assert counts
    one.receive(m.Counted(1, counts[-1].request, 7, 5, 1, {7: 1}), 12)
    assert serials(one) == [5]
    one.receive(numbered(7, 2), 12)
    assert serials(one) == [5]  # some node on the way may still lack the subscription
    one.receive(m.Beat(1, 7, {7: 2}, digest((7,)), 2), 13)
    assert serials(one) == [5, 7]


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


def test_answers_that_take_longer_than_questions_are_repeated() -> None:
    """The count is asked for again before the answer comes, which is taken all the same."""
    one = ordered()
    one.receive(m.Skipped(), 0)
    one.receive(numbered(5, 1), 0)
    counts = []
    for now in range(1, 30):
        counts += [what for _, what in hear(one, now, 0) if isinstance(what, m.Count)]
    assert len(counts) > 1
    one.receive(m.Counted(1, counts[0].request, 7, 5, 1, {7: 1}), 30)
    assert serials(one) == [5]


def test_a_late_answer_says_what_is_lost() -> None:
    """What is missing was asked for again before the first answer came."""
    one = ordered()
    first = only(one.receive(numbered(3, 3), 0))
    again = [recover for now in range(1, 8) for recover in recovers(hear(one, now, 3))]
    assert again
    ((_, count),) = one.receive(m.Settled(1, first.request, (m.Range(7, 1, 1),)), 8)
    assert isinstance(count, m.Count)
    assert not one.inbox
    one.receive(m.Recovered(1, first.request, (numbered(2, 2),)), 8)
    one.receive(m.Settled(1, again[-1].request, (m.Range(7, 1, 1),)), 9)
    one.receive(m.Counted(1, count.request, 7, 3, 3, {7: 3}), 9)
    assert serials(one) == [Lost(1), 2, 3]


def test_a_late_answer_does_not_answer_another_question() -> None:
    """After the answer, what it did not bring counts as lost; a late one is none."""
    one = ordered()
    first = only(one.receive(numbered(2, 2), 0))
    one.receive(m.Recovered(1, first.request, (numbered(1, 1),)), 0)
    one.receive(numbered(4, 4), 0)
    second = [recover for now in range(1, 9) for recover in recovers(hear(one, now, 4))]
    assert second[-1].ranges == (m.Range(7, 3, 3),)
    for now in range(9, 20):
        hear(one, now, 4)
        one.receive(m.Settled(1, first.request), now)
    assert not [what for what in one.inbox if isinstance(what, Lost)]


def test_a_count_that_comes_while_others_are_asked_for_is_taken() -> None:
    one = ordered()
    one.receive(m.Skipped(), 0)
    one.receive(numbered(5, 1), 0)
    counts = [what for now in range(1, 12) for _, what in hear(one, now, 0)
              if isinstance(what, m.Count)]  # fmt: skip
    one.receive(m.Counted(1, counts[-1].request, 7, 6, 2, {7: 2}), 12)
    one.receive(m.Counted(1, counts[0].request, 7, 9, 3, {7: 2, 8: 1}), 12)
    assert serials(one) == [5]
    one.receive(m.Recovered(1, 99, (numbered(6, 2),)), 13)
    assert serials(one) == [5]  # up to 9 it is known what is missing
    one.receive(m.Recovered(1, 99, (numbered(8, 1, node=8),)), 13)
    assert serials(one) == [5, 6, 8]


def test_a_beat_is_as_good_as_a_count_that_is_not_answered() -> None:
    one = ordered()
    recover = only(one.receive(numbered(2, 2), 0))
    one.receive(m.Recovered(1, recover.request, (numbered(1, 1),)), 0)
    ((_, count),) = one.receive(m.Settled(1, recover.request), 0)
    assert isinstance(count, m.Count)
    one.receive(m.Beat(1, 3, {}, digest((7,)), 3), 1)  # 3 has not come
    assert serials(one) == []
    one.receive(numbered(3, 3), 1)
    one.receive(m.Beat(1, 3, {}, digest((7,)), 3), 2)
    assert serials(one) == [1, 2, 3]
    assert one.complete == 3
    assert not one.tick(9)[1:]  # only that it is still there


def test_one_that_comes_again_with_another_mark_hides_no_other() -> None:
    """It counts once, so the total shows that one is missing."""
    one = joined()
    one.receive(m.Counted(1, 2, 7, 0, 0, {}), 0)
    one.receive(numbered(1, 1), 0)
    recover = only(one.receive(m.Counted(1, 3, 7, 1, 1, {7: 1, 8: 1}), 0))
    one.receive(m.Recovered(1, recover.request, (numbered(1, 1, node=8),)), 0)
    one.receive(m.Settled(1, recover.request), 0)
    assert serials(one) == [1]
    one.receive(m.Beat(1, 2, {7: 2}, digest((7,)), 2), 1)
    assert one.complete < 2
    assert [what for _, what in one.tick(9) if isinstance(what, m.Count)]


def test_a_lost_number_of_one_that_arrived_is_not_lost() -> None:
    """It arrived with another mark, and the rendezvous point has dropped it since."""
    one = joined()
    one.receive(m.Counted(1, 2, 7, 0, 0, {}), 0)
    one.receive(numbered(1, 1), 0)
    one.receive(m.Beat(1, 1, {7: 1}, digest((7,)), 1), 0)
    assert one.complete == 1
    one.receive(m.Beat(1, 3, {7: 3}, digest((7,)), 3), 1)
    (count,) = (what for _, what in one.tick(9) if isinstance(what, m.Count))
    recover = only(one.receive(m.Counted(1, count.request, 7, 3, 3, {7: 3, 8: 1}), 9))
    assert recover.ranges == (m.Range(7, 2, 3), m.Range(8, 1, 1))
    one.receive(m.Recovered(1, recover.request, (numbered(2, 2),)), 9)
    lost = m.Range(7, 3, 3), m.Range(8, 1, 1)
    ((_, again),) = one.receive(m.Settled(1, recover.request, lost), 9)
    assert isinstance(again, m.Count)
    one.receive(m.Counted(1, again.request, 7, 3, 3, {7: 3, 8: 1}), 9)
    assert serials(one) == [1, 2, Lost(1)]
