"""A router that asks a preprocessor for the places of nodes: which answers it uses, and when it
asks the node above instead. Whole networks with such routers are in test_network.py."""

from __future__ import annotations

import pytest

from tidings.routing.forwarding import LOCATOR, Router, Sent
from tidings.routing.protocol import messages as m

LIFE = 7
UP = "up"


def a_router() -> Router:
    router = Router("r", UP)
    router.receive(UP, m.Beat(LIFE, 0, {}, m.Digest(), 0), 0.0)
    router.locating.is_on = True
    return router


def want(router: Router, *nodes: int) -> m.Locate:
    """A neighbour wants nodes; the question for a preprocessor."""
    ((to, asked),) = router.receive("below", m.Subscribe(LIFE, nodes), 1.0)
    assert to == LOCATOR
    assert isinstance(asked, m.Locate)
    return asked


def located(version: int, *places: tuple[int, tuple[int, ...], tuple[int, ...]]) -> m.Located:
    return m.Located(LIFE, 0, version, tuple(m.NodePlace(*one) for one in places))


def set_up(router: Router, node: int) -> list[Sent]:
    return router.receive(UP, m.Setup(LIFE, node, (), (), 0, 0, placed=True), 1.0)


def test_the_place_is_that_of_the_preprocessor() -> None:
    router = a_router()
    asked = want(router, 3, 4, 5)
    assert asked.nodes == (3, 4, 5)
    # 3 covers 4 covers 5; 2 and 6 are nodes that this router does not have
    answer = located(9, (3, (2,), (4, 5, 6)), (4, (2, 3), (5, 6)), (5, (2, 3, 4), ()))
    sent = router.take_places(asked, answer, 1.0)
    assert sent == [(UP, m.Subscribe(LIFE, (3, 4, 5), True))]
    for node in (5, 3, 4):
        assert [to for to, _ in set_up(router, node)] == ["below"]
    assert {node: router.graph.parents(node) for node in (3, 4, 5)} == {3: (), 4: (3,), 5: (4,)}
    assert router.locating.located == 3


def test_an_answer_that_lacks_newer_nodes() -> None:
    """The node is put into the graph, and the node above is asked for the rest."""
    router = a_router()
    older, newer = want(router, 3), want(router, 8)
    router.take_places(newer, located(8, (8, (3,), ())), 1.0)
    set_up(router, 8)
    router.take_places(older, located(5, (3, (), ())), 1.0)
    sent = set_up(router, 3)
    assert (UP, m.Subscribe(LIFE, (3,), False)) in sent
    assert 3 in router.graph
    assert router.graph.children(3) == ()
    sent = router.receive(UP, m.Setup(LIFE, 3, (), (8,), 0, 0), 1.0)
    assert router.graph.children(3) == (8,)
    assert ("below", m.Skipped()) in sent


@pytest.mark.parametrize("answer", [
    None,
    located(9),
    located(2, (3, (), ())),
    m.Located(LIFE + 1, 0, 9, (m.NodePlace(3, (), ()),)),
])  # fmt: skip
def test_answers_that_are_not_used(answer: m.Located | None) -> None:
    """None, none for this node, one from before the node, one of another life."""
    router = a_router()
    asked = want(router, 3)
    assert router.take_places(asked, answer, 1.0) == [(UP, m.Subscribe(LIFE, (3,)))]
    assert router.locating.located == 0


def test_a_preprocessor_that_is_wrong() -> None:
    router = a_router()
    asked = want(router, 3, 4, 5)
    places = located(9, (3, (), (4,)), (4, (3,), ()), (5, (4,), (3,)))
    router.take_places(asked, places, 1.0)
    set_up(router, 3)
    set_up(router, 4)
    assert set_up(router, 5) == [(UP, m.Subscribe(LIFE, (5,)))]
    assert 5 not in router.graph


def test_silence_and_late_answers() -> None:
    """After a while the node above is asked; a late answer, or one for another life, is ignored."""
    router = a_router()
    asked = want(router, 3)
    router.heard = 4.9
    sent = router.tick(5.0)
    assert (UP, m.Subscribe(LIFE, (3,))) in sent
    router.receive(UP, m.Setup(LIFE, 3, (), (), 0, 0), 5.0)
    assert router.take_places(asked, located(9, (3, (), ())), 5.0) == []
    other = want(router, 4)
    router.receive("below", m.Unsubscribe(LIFE, (4,)), 5.0)
    assert router.take_places(other, located(9, (4, (), ())), 5.0) == []
    assert 4 not in router.graph


def test_a_neighbour_that_knows_the_place_gets_no_edges() -> None:
    """Also if the router had to ask for the node itself first."""
    router = a_router()
    router.locating.is_on = False
    router.receive("below", m.Subscribe(LIFE, (3,)), 1.0)
    router.receive(UP, m.Setup(LIFE, 3, (), (), 5, 0), 1.0)
    router.receive("below", m.Subscribe(LIFE, (4,), placed=True), 1.0)
    sent = router.receive(UP, m.Setup(LIFE, 4, (3,), (), 2, 0), 1.0)
    assert ("below", m.Setup(LIFE, 4, (), (), 2, 0, 0, placed=True)) in sent
    sent = router.receive("below", m.Subscribe(LIFE, (4,)), 1.0)
    assert ("below", m.Setup(LIFE, 4, (3,), (), 2, 0, 0)) in sent
