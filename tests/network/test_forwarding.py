"""Forwarding by fronts: what the router itself forwards, frame by frame."""

from __future__ import annotations

import random
from collections import defaultdict

import pytest
from tests.decoding import decode_all

from tidings.network.forwarding import Forwarder, measure_costs
from tidings.network.frame_cache import FrameCache
from tidings.routing.forwarding.router import Router
from tidings.routing.forwarding.ways import Forwarding, Mode
from tidings.routing.protocol import frames, messages as m
from tidings.routing.protocol.frames import FrameError


def grown(chance: random.Random) -> Router:
    """A router with nodes that have up to two parents, and three neighbours that want some."""
    router = Router("r", "up")
    router.epoch = 1
    for node in range(1, 30):
        router.graph.insert(node, {node // 2, node // 3} - {0}, [])
        for neighbour in "abc":
            if chance.random() < 0.3:
                router.graph.subscribe(node, neighbour)
    router.note_graph_change()
    return router


def notification(chance: random.Random, serial: int) -> m.Notification:
    marks = tuple(
        m.Mark(chance.randrange(1, 40), serial, (chance.randrange(1, 40),))
        for _ in range(chance.randrange(4))
    )
    return m.Notification(1, serial, marks, chance.randbytes(chance.randrange(9)), "p", serial)


@pytest.mark.parametrize("mode", Mode)
def test_against_the_router(seed: int, mode: Mode) -> None:
    chance = random.Random(seed)
    router = grown(chance)
    router.forwarding = Forwarding(mode, rewrite=20, byte=1)
    forwarder = Forwarder(router)
    serial = 0
    for _ in range(30):
        given = [notification(chance, serial := serial + 1) for _ in range(chance.randrange(20))]
        buffer = b"".join(map(frames.encode, given))
        starts, end = frames.split(buffer)
        expected = defaultdict(list)
        for one in given:
            router.forward(one)
            for to, message in router.drain_outgoing():
                expected[to].append(message)
        sent = forwarder.forward(buffer, starts, [*starts[1:], end][: len(starts)])
        found = {
            to: list(decode_all(b"".join(bytes(piece) for piece in pieces)))
            for to, (pieces, _) in sent.items()
        }
        assert found == expected
        assert {to: count for to, (_, count) in sent.items()} == {
            to: len(messages) for to, messages in expected.items()
        }
        node, neighbour = chance.randrange(1, 30), chance.choice("abc")
        if not router.graph.subscribe(node, neighbour):
            router.graph.unsubscribe(node, neighbour)
        router.note_graph_change()


def test_frames_that_stay_as_they_are_go_as_one_slice() -> None:
    router = Router("r", "up")
    router.graph.insert(1, (), ())
    router.graph.subscribe(1, "a")
    given = [m.Notification(1, n, (m.Mark(1, n, (1,)),), b"x" * 200) for n in range(50)]
    buffer = b"".join(map(frames.encode, given))
    starts, end = frames.split(buffer)
    pieces, count = Forwarder(router).forward(buffer, starts, [*starts[1:], end])["a"]
    assert (len(pieces), count) == (1, 50)
    assert bytes(pieces[0]) == buffer


def test_fronts_that_do_not_fit() -> None:
    router = Router("r", "up")
    good = frames.encode(m.Notification(1, 1, (m.Mark(1, 1, (1,)),), b""))
    bad = bytearray(good)
    bad[8] = 255  # the labels' size
    with pytest.raises(FrameError, match="too short for its parts"):
        Forwarder(router).forward(bytes(bad), [0], [len(bad)])
    with pytest.raises(FrameError, match="too short for its parts"):
        Forwarder(router).forward(b"\x02\0\0\0\x01\x01", [0], [6])


def test_labels_of_another_length() -> None:
    """Of three neighbours one gets frames as they are, one a shorter and one a longer label."""
    router = Router("r", "up")
    for node, parents in ((1, ()), (2, ()), (3, (1, 2)), (4, (3,))):
        router.graph.insert(node, parents, ())
    for node, neighbour in ((4, "same"), (3, "other"), (1, "longer"), (2, "longer")):
        router.graph.subscribe(node, neighbour)
    given = [m.Notification(1, n, (m.Mark(4, n, (4,)),), bytes([n]) * n) for n in range(9)]
    buffer = b"".join(map(frames.encode, given))
    starts, end = frames.split(buffer)
    sent = Forwarder(router).forward(buffer, starts, [*starts[1:], end])
    for name, label in (("same", (4,)), ("other", (3,)), ("longer", (1, 2))):
        pieces, count = sent[name]
        assert count == 9
        assert list(decode_all(b"".join(pieces))) == [
            m.Notification(1, n, (m.Mark(4, n, label),), bytes([n]) * n) for n in range(9)
        ]


def test_all_goes_to_a_neighbour_that_is_alone() -> None:
    router = Router("r", "up")
    router.forwarding = Forwarding(Mode.ADAPTIVE)
    for node in (1, 2):
        router.graph.insert(node, (), ())
        router.graph.subscribe(node, "a")
    given = [m.Notification(1, n, (m.Mark(n, 1, (n,)),), b"x") for n in (1, 2, 1)]
    buffer = b"..." + b"".join(map(frames.encode, given))
    starts = [3 + at for at in frames.split(buffer[3:])[0]]
    forwarder = Forwarder(router)
    pieces, count = forwarder.forward(buffer, starts, [*starts[1:], len(buffer)])["a"]
    assert (b"".join(pieces), count) == (buffer[3:], 3)
    router.graph.subscribe(2, "b")
    router.note_graph_change()
    sent = forwarder.forward(buffer, starts, [*starts[1:], len(buffer)])
    assert {name: count for name, (_, count) in sent.items()} == {"a": 3, "b": 1}


def test_costs_are_measured() -> None:
    costs = measure_costs()
    assert costs.mode is Mode.ADAPTIVE
    assert 100 < costs.rewrite < 1_000_000
    assert 0 < costs.byte < 1000


def test_a_cache_of_notifications_without_payloads() -> None:
    """Whoever asks again and again makes a router read more, and not keep more."""
    cache = FrameCache(100_000)
    for start in range(1, 5000, 50):
        numbers = range(start, start + 50)
        marks = [(m.Mark(1, number, (1,)),) for number in numbers]
        data = [frames.encode(m.Notification(1, one[0].number, one, b"")) for one in marks]
        cache.put_frames(b"".join(data))
        cache.find([m.Range(1, 1, 10)])
        assert len(cache) <= 200
    assert [one.serial for one in cache.find([m.Range(1, 4990, 5000)])[0]] == [*range(4990, 5001)]
