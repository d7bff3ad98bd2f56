"""Channels of one router: random trees with several channels and roots, faults and crashes; at
quiet points each channel is as defined, as if it were alone."""

from __future__ import annotations

import os
import random

import pytest
from tests.routing.channel_world import Net, root_of
from tests.routing.test_network import busy, check
from tests.routing.world import ROOT, Faults

from tidings.routing.channels import WINDOW
from tidings.routing.clients.subscriber import Delivery
from tidings.routing.protocol import messages as m

SMALL = 2000  # bytes: a window for a few publications


def settle(net: Net) -> None:
    net.faults, net.slow = Faults(), {}
    net.run(90)
    net.check_credit()


def check_all(net: Net) -> None:
    """Each channel is as defined, and nothing of one is seen in another."""
    for channel, world in net.worlds.items():
        check(world)
        mine = {*world.published.values()}
        for one in world.subscribers.values():
            told = {what.payload for what in one.inbox if isinstance(what, Delivery)}
            assert told <= mine, channel


def all_busy(net: Net, steps: int, crashes: float) -> None:
    """Something happens in one channel after the other."""
    for _ in range(steps // 4):
        world = net.worlds[net.chance.choice(net.names)]
        busy(world, 4, crashes=0.0)
        net.check_credit()
        if net.chance.random() < crashes:
            name = net.chance.choice([ROOT, *net.routers])
            world.crash(name)


@pytest.mark.parametrize("crashes", [0.0, 0.2])
def test_several_channels_and_roots(seed: int, crashes: float) -> None:
    most = 2_000_000 if os.environ.get("TIDINGS_PROFILE") == "soak" else 20_000
    operations, round_, slept = 0, 0, 0
    while operations < most or (not slept and round_ < 1000):
        chance = random.Random(f"{seed} {round_} {crashes} channels")
        window = chance.choice((WINDOW, SMALL))
        net = Net(chance, chance.randrange(1, 8), chance.randrange(2, 5), window)
        for _ in range(3):
            net.slow = some_slow(net)
            net.faults = Faults(chance.choice((0.0, 0.05)), 0.0, chance.choice((0.02, 0.5)))
            all_busy(net, 80, crashes)
            settle(net)
            check_all(net)
        operations += net.operations
        slept += net.slept
        round_ += 1
    assert slept  # the quiet times are long enough for that


def some_slow(net: Net) -> dict[tuple[str, str], int]:
    """Nodes that are slow in one channel, some of them so that it stands still."""
    chance, found = net.chance, {}
    for _ in range(chance.randrange(4)):
        channel = chance.choice(net.names)
        node = chance.choice([root_of(channel), *net.routers])
        found[node, channel] = chance.choice((0, 1, 2))
    return found


def test_a_slow_channel_does_not_stall_another(seed: int) -> None:
    """One channel stands still at its rendezvous point, and many publish there over the same links
    as in another channel. What waits is bounded, the other channel is as fast as without it, and
    nothing is lost when it goes on."""
    chance = random.Random(f"{seed} slow")
    net = Net(chance, 3, 2, SMALL)
    for at, name in enumerate(net.routers):  # a chain, so that every link is shared
        above = net.routers[at - 1] if at else ""
        net.hops[name] = {channel: above or root_of(channel) for channel in net.names}
    for name in net.routers:
        net.crash(name)
    net.run(10)
    slow, fast = net.worlds["c0"], net.worlds["c1"]
    for world in (slow, fast):
        world.parents = {"r0": ROOT, "r1": "r0", "r2": "r1"}
        world.choose = lambda: "r2"  # type: ignore[method-assign]
        world.subscribe("s", (1, 2))
        for publisher in ("p0", "p1", "p2", "q"):
            world.publish(publisher, 3, b"\3 before")
    net.run(20)
    net.slow = {(root_of("c0"), "c0"): 0}
    for number in range(60):
        for publisher in ("p0", "p1", "p2"):
            slow.publish(publisher, 1, b"\1 slow %d %s" % (number, publisher.encode()))
        net.run(0.05)
        net.check_credit()
        fast.publish("q", 1, b"\1 fast %d" % number)
        net.run(1.0)
        (told,) = fast.subscribers.values()
        assert told.inbox, number
        assert [one for one in told.inbox if isinstance(one, Delivery)][-1].payload == (
            b"\1 fast %d" % number
        )
    assert any(mux.links.held for mux in net.muxes.values())  # credit has an effect
    assert not slow.subscribers["s"].inbox
    settle(net)
    check_all(net)
    found = [one for one in slow.subscribers["s"].inbox if isinstance(one, Delivery)]
    assert len(found) == 3 * 60


def test_channels_of_a_silent_node_above_wake_up(seed: int) -> None:
    """A sleeping channel is not repeated by pulses for ever: when the node above falls silent, it
    wakes up, and its subscribers know after a while. When the link is back, nothing was lost."""
    net = Net(random.Random(seed), 1, 2)
    net.hops["r0"] = {channel: f"{ROOT}/{channel}" for channel in net.names}
    net.crash("r0")
    net.run(5)
    world = net.worlds["c0"]
    world.choose = lambda: "r0"  # type: ignore[method-assign]
    one = world.subscribe("s", (1, 2))
    net.run(20)  # until the subscription is in force
    world.publish("p", 1, b"\1 before")
    net.run(60)
    mux = net.muxes["r0"]
    assert not mux.awake
    assert world._heard["s"].said  # pulses stand for the beats of the channel
    world.publish("p", 2, b"\2 in its sleep")
    net.run(5)
    assert [what.payload for what in one.inbox if isinstance(what, Delivery)] == [
        b"\1 before", b"\2 in its sleep",
    ]  # fmt: skip
    net.run(60)
    assert not mux.awake
    net.cut = {frozenset(("r0", f"{ROOT}/c0"))}
    net.run(3 * net.times.silent)
    assert [*mux.awake] == ["c0"]
    assert not world._heard["s"].said
    world.publish("p", 1, b"\1 while away")
    net.cut = set()
    net.reconnect("r0", f"{ROOT}/c0")
    settle(net)
    check_all(net)
    payloads = [what.payload for what in one.inbox if isinstance(what, Delivery)]
    assert payloads[-1] == b"\1 while away"


def test_a_channel_is_dropped_when_nobody_has_it(seed: int) -> None:
    net = Net(random.Random(seed), 1, 1)
    world = net.worlds["c0"]
    world.choose = lambda: "r0"  # type: ignore[method-assign]
    world.subscribe("s", (1, 2))
    net.run(10)
    mux, root = net.muxes["r0"], net.muxes[f"{ROOT}/c0"]
    assert [*mux.known] == ["c0"]
    net.transmit("c0:s", [("r0", 0, m.Close(world._numbers["s"]))])
    world._heard["s"].remove(world._numbers["s"])  # as a router or an agent does
    del world.subscribers["s"]
    net.run(5)
    assert not mux.known
    assert not root.known["c0"].below
    assert not world.root.neighbours
