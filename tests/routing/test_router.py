"""A router by itself, among nodes that forget. Whole networks are in test_network.py."""

from __future__ import annotations

from itertools import pairwise

from tidings.routing.forwarding import Router, Sent
from tidings.routing.protocol import messages as m
from tidings.routing.protocol.digests import digest

LIFE = 7
UP = "up"


def test_edges_that_were_missing_are_passed_on() -> None:
    """The node above had forgotten its graph when node 50 was placed, so nobody here was told that
    18 covers 50. When the node above has 18 again, it says so, and the router passes that on:
    otherwise the routers below would send no notifications of 50 to subscribers of 18 until the
    next beat."""
    router = Router("r", UP)
    router.receive(UP, m.Beat(LIFE, 0, {}, m.Digest(), 0), 0.0)
    for name, nodes in (("both", (18, 50)), ("one", (18,))):
        router.receive(name, m.Subscribe(LIFE, nodes), 1.0)
    for node in (18, 50):
        router.receive(UP, m.Setup(LIFE, node, (), (), 0, 0), 1.0)
    told = m.Setup(LIFE, 18, (), (50,), 0, 0)
    sent = router.receive(UP, told, 1.0)
    setups = [(to, one.node, one.children) for to, one in sent if isinstance(one, m.Setup)]
    assert setups == [("both", 18, (50,))]
    again = router.receive(UP, told, 1.0)
    assert not [one for _, one in again if isinstance(one, m.Setup)]


def test_neighbours_that_want_nothing_get_beats_a_few_at_a_time() -> None:
    """There may be thousands of them, and a router forwards nothing while it sends them beats. They
    get one beat in four, and none while no beats come from above."""
    router = Router("r", UP)
    many, beats = 2000, dict[object, list[float]]()

    def note(sent: list[Sent], now: float) -> int:
        found = [to for to, one in sent if isinstance(one, m.Beat) and to != UP]
        for to in found:
            beats.setdefault(to, []).append(now)
        return len(found)

    router.receive(UP, m.Beat(LIFE, 0, {}, m.Digest(), 0), 0.0)
    for number in range(many):
        router.receive(number, m.Redraw(LIFE), 0.0)
    router.receive("wants", m.Subscribe(LIFE, (5,)), 0.0)
    most = now = 0
    for now in range(1, 17):
        nothing = m.Digest()
        most = max(most, note(router.receive(UP, m.Beat(LIFE, 0, {}, nothing, 0), now), now))
        for _ in range(16):
            most = max(most, note(router.keep_alive(now, 64), now))
    assert most <= 32 + many // 64 + 1
    assert beats.pop("wants") == [*range(1, 17)]
    assert len(beats) == many
    assert {len(found) for found in beats.values()} <= {3, 4, 5}
    assert all(later - one <= 5 for found in beats.values() for one, later in pairwise(found))
    assert not any(note(router.keep_alive(now + later, 64), now) for later in range(1, 20))


def hear(router: Router, beat: m.Beat) -> dict[object, bool]:
    """Let a beat come from above: whether each neighbour is told that a node is behind."""
    sent = router.receive(UP, beat, 2.0)
    return {to: one.behind for to, one in sent if isinstance(one, m.Beat)}


def subscribed(*nodes: int, total: int = 3) -> m.Beat:
    """A beat from above, for a router that has these nodes."""
    return m.Beat(LIFE, 9, {}, digest(nodes), total * len(nodes), seen=9)


def join(router: Router) -> None:
    """Two neighbours want a node each; the first node covers the second."""
    router.receive(UP, m.Beat(LIFE, 0, {}, m.Digest(), 0), 0.0)
    router.receive("a", m.Subscribe(LIFE, (1,)), 1.0)
    router.receive("b", m.Subscribe(LIFE, (5,)), 1.0)
    router.receive(UP, m.Setup(LIFE, 1, (), (), 3, 9, 9), 1.0)
    router.receive(UP, m.Setup(LIFE, 5, (1,), (), 3, 9, 9), 1.0)
    assert hear(router, subscribed(1, 5)) == {"a": False, "b": False}


def test_beats_say_whether_a_node_on_the_way_is_behind() -> None:
    """After notifications may be missing, until a beat shows that everything is subscribed above,
    and that the nodes above are not behind either."""
    router = Router("r", UP)
    join(router)
    router.receive(UP, m.Skipped(), 2.0)
    for wrong in (subscribed(5), subscribed(1, 5, total=2)):
        assert hear(router, wrong) == {"a": True, "b": True}
    above = m.Beat(LIFE, 9, {}, digest((1, 5)), 6, seen=9, behind=True)
    assert hear(router, above) == {"a": True, "b": True}
    assert hear(router, subscribed(1, 5)) == {"a": False, "b": False}
    router.join_upstream(2.0)
    sent = router.receive("a", m.Resubscribe(LIFE + 1, digest((1,)), 0), 2.0)  # it is told the life
    assert [one.behind for _, one in sent if isinstance(one, m.Beat)] == [True]
    assert hear(router, subscribed(1, 5)) == {"a": False, "b": False}


def test_a_node_that_is_wanted_again_before_it_is_gone() -> None:
    """Notifications of node 5 go on coming, and reach those who want node 1, which covers it. Those
    of node 1 alone come until the node above drops it, and again when it has it again. In between
    nothing marks the place where they are missing, so beats say that the router is behind, even
    one that was sent before the node above heard of this."""
    router = Router("r", UP)
    join(router)
    assert router.receive("a", m.Unsubscribe(LIFE, (1,)), 2.0) == [
        (UP, m.Unsubscribe(LIFE, (1,))), ("a", m.Gone(LIFE, (1,)))
    ]  # fmt: skip
    ((to, told),) = router.receive("a", m.Subscribe(LIFE, (1,)), 2.0)
    assert to == "a"
    assert isinstance(told, m.Setup)
    assert hear(router, subscribed(1, 5)) == {"a": True, "b": False}
    late = m.Setup(LIFE, 1, (), (5,), 3, 9, 9)  # an answer to an earlier request
    router.receive(UP, late, 2.0)
    assert hear(router, subscribed(1, 5)) == {"a": True, "b": False}
    asked = router.receive(UP, m.Gone(LIFE, (1,)), 2.0)
    assert asked == [(UP, m.Subscribe(LIFE, (1,)))]
    assert hear(router, subscribed(5)) == {"a": True, "b": True}
    sent = router.receive(UP, late, 2.0)
    assert ("a", m.Skipped()) in sent
    assert hear(router, subscribed(1, 5)) == {"a": False, "b": False}


def test_a_node_that_is_wanted_again_when_the_link_comes_back() -> None:
    """Nobody confirms over the new link what was unsubscribed over the old one."""
    router = Router("r", UP)
    join(router)
    router.receive("a", m.Unsubscribe(LIFE, (1,)), 2.0)
    router.receive("a", m.Subscribe(LIFE, (1,)), 2.0)
    sent = router.join_upstream(2.0)
    assert (UP, m.Subscribe(LIFE, (1,))) in sent
    assert (UP, m.Wanted(LIFE, (1, 5))) in sent
