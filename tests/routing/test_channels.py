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
    while operations < most:
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
