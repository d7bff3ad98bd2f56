"""Publishers in the world that tag by themselves, at versions that are older than those of the
root, while messages are lost and everybody crashes: subscribers get what they would get without
tags."""

from __future__ import annotations

import random

import pytest
from tests.repeats import draws, runs
from tests.routing.test_network import busy, check, check_tags, settle
from tests.routing.world import Faults, World

from tidings.routing.protocol.tags import FRONT, Tag, pack_tag, unpack_tag
from tidings.routing.root import node_history
from tidings.routing.root.handover import correcting


@pytest.mark.parametrize("run", runs(3, 80))
@pytest.mark.parametrize("crashes", [0.0, 0.06])
def test_a_lossy_network(seed: int, crashes: float, run: int) -> None:
    chance = random.Random(f"{seed} {run} {crashes} tags")
    world = World(chance, chance.randrange(0, 6))
    world.tags = True
    for _ in draws(3, lambda: world.tagged > 10):
        world.faults = Faults(
            chance.choice((0.0, 0.02, 0.2)), chance.choice((0.0, 0.1)), chance.choice((0.02, 1))
        )
        busy(world, 60, crashes=crashes)
        settle(world)
        check(world)
        check_tags(world)
    assert world.tagged > 10


@pytest.mark.parametrize("run", runs(4, 40))
def test_journals_that_go_back_in_time(
    seed: int, run: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tags of a life that is gone, or of versions that nobody remembers, are not used."""
    monkeypatch.setattr(node_history, "MOST_AROUND", 5)
    monkeypatch.setattr(correcting, "FEW", 2)
    chance = random.Random(f"{seed} {run} tags disks")
    world = World(chance, chance.randrange(0, 5))
    world.tags = True
    for _ in range(3):
        world.faults = Faults(0.02, 0.02, 0.2)
        busy(world, 60, crashes=0.06, disks=0.5)
        settle(world)
        check(world)
        check_tags(world)


def test_tags_as_bytes() -> None:
    tag = Tag(2**62, 7, (1, 5, 2**40))
    data = pack_tag(*tag)
    assert len(data) == FRONT + 24
    assert unpack_tag(data) == tag
    assert unpack_tag(pack_tag(1, 2, ())) == Tag(1, 2, ())
    assert [unpack_tag(bad) for bad in (b"", data[:8], data[:-1])] == [None] * 3
