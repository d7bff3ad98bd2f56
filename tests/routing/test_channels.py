"""Channels of one router: random trees with several channels and roots, faults and crashes; at
quiet points each channel is as defined, as if it were alone."""

from __future__ import annotations

import os
import random

import pytest
from tests.routing.channel_world import Net
from tests.routing.test_network import busy, check
from tests.routing.world import ROOT, Faults

from tidings.routing.clients.subscriber import Told
from tidings.routing.protocol import messages as m


def settle(net: Net) -> None:
    net.faults = Faults()
    net.run(90)


def check_all(net: Net) -> None:
    """Each channel is as defined, and nothing of one is seen in another."""
    for channel, world in net.worlds.items():
        check(world)
        mine = {*world.published.values()}
        for one in world.subscribers.values():
            told = {what.payload for what in one.inbox if isinstance(what, Told)}
            assert told <= mine, channel


def all_busy(net: Net, steps: int, crashes: float) -> None:
    """Something happens in one channel after the other."""
    for _ in range(steps // 4):
        world = net.worlds[net.chance.choice(net.names)]
        busy(world, 4, crashes=0.0)
        if net.chance.random() < crashes:
            name = net.chance.choice([ROOT, *net.routers])
            world.crash(name)


@pytest.mark.parametrize("crashes", [0.0, 0.2])
def test_several_channels_and_roots(seed: int, crashes: float) -> None:
    most = 2_000_000 if os.environ.get("TIDINGS_PROFILE") == "soak" else 60_000
    operations, round_, slept = 0, 0, 0
    while operations < most or (not slept and round_ < 1000):
        chance = random.Random(f"{seed} {round_} {crashes} channels")
        net = Net(chance, chance.randrange(1, 8), chance.randrange(2, 5))
        for _ in range(3):
            net.faults = Faults(chance.choice((0.0, 0.05)), 0.0, chance.choice((0.02, 0.5)))
            all_busy(net, 80, crashes)
            settle(net)
            check_all(net)
        operations += net.operations
        slept += net.slept
        round_ += 1
    assert slept  # the quiet times are long enough for that


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
    assert [what.payload for what in one.inbox if isinstance(what, Told)] == [
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
    payloads = [what.payload for what in one.inbox if isinstance(what, Told)]
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
    del world.subscribers["s"]
    net.run(5)
    assert not mux.known
    assert not root.known["c0"].below
    assert not world.root.neighbours
