"""A router by itself, among nodes that forget. Whole networks are in test_network.py."""

from __future__ import annotations

from itertools import pairwise

from tidings.routing.forwarding import Router, Sent
from tidings.routing.protocol import messages as m

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
        digest = m.Digest()
        most = max(most, note(router.receive(UP, m.Beat(LIFE, 0, {}, digest, 0), now), now))
        for _ in range(16):
            most = max(most, note(router.keep_alive(now, 64), now))
    assert most <= 32 + many // 64 + 1
    assert beats.pop("wants") == [*range(1, 17)]
    assert len(beats) == many
    assert {len(found) for found in beats.values()} <= {3, 4, 5}
    assert all(later - one <= 5 for found in beats.values() for one, later in pairwise(found))
    assert not any(note(router.keep_alive(now + later, 64), now) for later in range(1, 20))
