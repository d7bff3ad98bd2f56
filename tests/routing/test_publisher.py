"""Publishers: they publish in order, repeat without an answer, and start over when the root has
forgotten them."""

from __future__ import annotations

import random

from tidings.routing.clients.publisher import GONE, Publisher, Refused, without_incarnation
from tidings.routing.protocol import messages as m
from tidings.routing.protocol.lineage import Break, StampRange
from tidings.routing.protocol.times import Times


def said(sent: list[tuple[object, m.Message]]) -> list[tuple[int, int]]:
    found = []
    for to, message in sent:
        assert to == "r"
        assert isinstance(message, m.Publish)
        found.append((message.stamp, message.first))
    return found


def test_a_window_of_what_is_under_way() -> None:
    one = Publisher("p", "r", Times(retry=3), window=2)
    assert said(one.publish(b"", b"a", 0)) == [(1, 1)]
    assert said(one.publish(b"", b"b", 0)) == [(2, 1)]
    assert said(one.publish(b"", b"c", 0)) == []
    assert said(one.tick(2)) == []
    assert said(one.tick(4)) == [(1, 1), (2, 1)]
    assert said(one.receive(m.Published(1, "p", 1), 5)) == [(3, 2)]
    assert (one.acknowledged, one.waiting) == (1, 2)
    assert said(one.receive(m.Published(1, "p", 1), 5)) == []
    assert said(one.receive(m.Published(1, "q", 3), 5)) == []
    one.receive(m.Published(1, "p", 3, "found no point"), 6)
    one.receive(m.Published(1, "p", 3, "found no point"), 6)
    assert (one.acknowledged, one.waiting, one.refused) == (1, 2, [Refused(3, "found no point")])
    one.receive(m.Published(1, "p", 2), 6)
    assert (one.acknowledged, one.waiting, one.refused) == (3, 0, [Refused(3, "found no point")])


def test_answers_in_any_order_against_a_set_of_stamps(seed: int) -> None:
    """Whole stretches, single ones, refusals, repeated and overlapping answers, and silence."""
    chance = random.Random(seed)
    one = Publisher("p", "r", Times(retry=3), window=20)
    sizes: list[int] = []
    settled: set[int] = set()
    refused: set[int] = set()
    sent: set[int] = set()
    for step in range(400):
        answers = list[tuple[object, m.Message]]()
        if chance.random() < 0.4:
            pairs = [(b"c", bytes(chance.randrange(9))) for _ in range(chance.randrange(1, 12))]
            sizes += [len(content) + len(payload) for content, payload in pairs]
            answers = one.publish_all(pairs, step)
        elif chance.random() < 0.1:
            answers = one.tick(step + 4.0 * chance.randrange(2))
        elif sent:
            last = chance.choice(sorted(sent))
            if last not in settled and chance.random() < 0.2:
                refused.add(last)
                settled.add(last)
                answers = one.receive(m.Published(1, "p", last, "no"), step)
            else:
                known = refused | {0}
                since = max(stamp for stamp in known if stamp <= last) + 1
                since = chance.randrange(since, last + 1) if since <= last else 0
                if since:
                    settled |= {*range(since, last + 1)}
                    answers = one.receive(m.Published(1, "p", last, since=since, serial=step), step)
        published = [message for _, message in answers if isinstance(message, m.Publish)]
        sent |= {message.stamp for message in published}
        state = one._unsettled
        upto = state._next - 1
        done = next(stamp for stamp in range(len(sizes) + 2) if stamp + 1 not in settled)
        assert (one.acknowledged, one.waiting) == (done, len(sizes) - done)
        assert {two.stamp for two in one.refused} == refused
        flying = [one for one in range(1, upto + 1) if one not in settled]
        assert (state.sent, state.sent_bytes) == (
            len(flying),
            sum(sizes[one - 1] for one in flying),
        )
        assert not settled & {message.stamp for message in published}
        assert all(message.first == done + 1 for message in published)


def test_a_refusal_that_was_not_heard() -> None:
    """What comes after it must not be taken for its acknowledgment."""
    one = Publisher("p", "r", Times(retry=3))
    for payload in (b"a", b"b", b"c"):
        one.publish(b"", payload, 0)
    one.receive(m.Published(1, "p", 1, since=1), 1)
    one.receive(m.Published(1, "p", 3, since=3), 1)  # the answer to 2 went down with a router
    assert (one.acknowledged, one.waiting) == (1, 2)
    (trace, *again) = one.tick(9)  # it is heard of as long as something may be gone
    assert isinstance(trace[1], m.Trace)
    assert said(again) == [(2, 2)]
    one.receive(m.Published(1, "p", 2, "found no point"), 10)
    assert (one.acknowledged, one.waiting, one.refused) == (3, 0, [Refused(2, "found no point")])


def test_one_that_goes_on_where_it_was() -> None:
    one = Publisher("p", "r", acknowledged=7)
    assert said(one.publish(b"", b"a", 0)) == [(8, 8)]


def lineage(sent: list[tuple[object, m.Message]], *pairs: tuple[int, int]) -> m.Lineage:
    """The answer to the question that is among what was sent."""
    (trace,) = (one for _, one in sent if isinstance(one, m.Trace))
    return m.Lineage(pairs[-1][0], trace.request, tuple(m.Life(*one) for one in pairs))


def acknowledged(count: int) -> Publisher:
    one = Publisher("p", "r", Times(retry=3))
    for _ in range(count + 2):
        one.publish(b"", b"x", 0)
    for stamp in range(1, count + 1):
        one.receive(m.Published(7, "p", stamp, since=stamp, serial=10 * stamp), 0)
    return one


def test_a_journal_that_went_back() -> None:
    one = acknowledged(5)
    sent = one.receive(m.Published(3, "p", 6, since=6, serial=31), 1)
    assert one.waiting == 2  # it is another life: nothing of it is believed before it was judged
    sent = one.receive(lineage(sent, (7, 1), (3, 31)), 1)
    assert [*one.breaks] == [Break(GONE, (StampRange(4, 5),))]
    names = [(m_.publisher, m_.stamp, m_.first) for _, m_ in sent if isinstance(m_, m.Publish)]
    assert names == [("p~1", 6, 6), ("p~1", 7, 6)]
    one.receive(m.Published(3, "p", 6, since=6, serial=31), 1)
    assert one.waiting == 2  # said under the name before
    one.receive(m.Published(3, "p~1", 7, since=6, serial=32), 1)
    assert (one.acknowledged, one.waiting, without_incarnation(one.name)) == (7, 0, "p")


def test_a_point_that_was_only_started_again() -> None:
    one = acknowledged(5)
    sent = one.receive(m.Beat(3, 0, {}, m.Digest(), 0), 1)
    sent = one.receive(lineage(sent, (7, 1), (3, 51)), 1)
    assert not one.breaks
    assert said(sent) == [(6, 6), (7, 6)]
    assert one.name == "p"


def test_a_point_that_expects_a_stamp_that_is_done_with() -> None:
    one = acknowledged(5)
    assert one.receive(m.Published(7, "p", 0, expected=6), 1) == []
    sent = one.receive(m.Published(7, "p", 0, expected=4), 1)
    assert [*one.breaks] == [Break(GONE, (StampRange(4, 5),))]
    assert [m_.publisher for _, m_ in sent if isinstance(m_, m.Publish)] == ["p~1", "p~1"]
    refused = Publisher("p", "r", Times(retry=3))
    refused.publish(b"", b"x", 0)
    refused.receive(m.Published(7, "p", 1, "the disk is full"), 0)
    refused.receive(m.Published(7, "p", 0, expected=1), 0)
    assert (refused.name, [*refused.breaks]) == ("p~1", [])  # nothing acknowledged is gone


def test_names_without_incarnations() -> None:
    for name, base in (("p~1", "p"), ("a~b/c", "a~b/c"), ("a~1/c~22", "a~1/c"), ("~", "~")):
        assert without_incarnation(name) == base


def test_stamps_that_are_settled_in_any_order() -> None:
    """What waits longest keeps nothing back, and is repeated now and then."""
    one = Publisher("p", "r", Times(retry=3), window=4)
    for _ in range(6):
        one.publish(b"", b"x", 0)
    one.receive(m.Published(1, "p", 3, since=3, serial=1), 1)
    assert (one.acknowledged, one.early) == (0, [3])
    sent = one.receive(m.Published(1, "p", 2, since=2, serial=2), 1)  # after a later one
    assert (one.early, said(sent)) == ([3, 2], [(6, 1)])
    one.early.clear()
    flood = [pair for _ in range(100) for pair in said(one.publish(b"", b"x", 2))]
    assert flood == [(stamp, 1) for stamp in range(7, 107)]
    assert said_only(one.tick(6)) == [(stamp, 1) for stamp in (1, *range(4, 13))]  # a silence
    assert len(said_only(one.tick(10))) == 20
    assert said(one.publish(b"", b"x", 10)) == [(107, 1)]
    one.receive(m.Published(1, "p", 107, since=107, serial=3), 61)
    assert said_only(one.tick(61.5)) == [(stamp, 1) for stamp in (1, 4, 5, 6)]  # sent up to 1
    assert len(said_only(one.tick(63))) == 100
    assert said_only(one.tick(63.5)) == []
    one.receive(m.Published(1, "p", 1, since=1, serial=4), 64)
    assert (one.acknowledged, one.waiting, one.early) == (3, 104, [107])
    assert said(one.join(65)) == [(stamp, 4) for stamp in range(4, 107)]  # another link


def said_only(sent: list[tuple[object, m.Message]]) -> list[tuple[int, int]]:
    """Without questions about the lineage."""
    return said([pair for pair in sent if isinstance(pair[1], m.Publish)])
