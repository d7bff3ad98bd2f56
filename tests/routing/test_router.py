"""A router by itself, among nodes that forget. Whole networks are in test_network.py."""

from __future__ import annotations

from tidings.routing.forwarding import Router
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
