"""Publishers: in order, again when there is no answer, anew when the memory of them is gone."""

from __future__ import annotations

from tidings.routing import messages as m
from tidings.routing.publisher import Publisher, Refused
from tidings.routing.router import Times


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


def test_a_refusal_that_was_not_heard() -> None:
    """What comes after it must not be taken for its acknowledgment."""
    one = Publisher("p", "r", Times(retry=3))
    for payload in (b"a", b"b", b"c"):
        one.publish(b"", payload, 0)
    one.receive(m.Published(1, "p", 1, since=1), 1)
    one.receive(m.Published(1, "p", 3, since=3), 1)  # the answer to 2 went down with a router
    assert (one.acknowledged, one.waiting) == (1, 2)
    assert said(one.tick(9)) == [(2, 2), (3, 2)]
    one.receive(m.Published(1, "p", 2, "found no point"), 10)
    assert (one.acknowledged, one.waiting, one.refused) == (3, 0, [Refused(2, "found no point")])


def test_one_that_goes_on_where_it_was() -> None:
    one = Publisher("p", "r", acknowledged=7)
    assert said(one.publish(b"", b"a", 0)) == [(8, 8)]
