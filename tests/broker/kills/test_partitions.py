"""Partitions and bad wires: each part of a network in a namespace of its own.

TIDINGS_SEED replays who is cut off in which order, for how long; TIDINGS_PARTITIONS says how many
there are in the long run.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from tests.broker.kills.run import Run
from tests.broker.kills.spaces import Spaces, made
from tests.broker.kills.tree import ROOT, Tree
from tests.broker.kills.wire import Weather
from tests.waiting import wait_for

from tidings.routing.protocol.times import Times

TIMES = Times(beat=0.25, resubscribe=0.5, retry=0.5, silent=1.5, expire=6.0, request=5.0)
"""Whoever is away for three times `expire` is forgotten, and is told of the break."""
AGENTS = ["reader-0", "writer-0", "writer-1"]
ABOVE = {"i0": ROOT, "i1": ROOT, "e0": "i0"}
WRITERS = [["e0"], ["i1"]]
READERS = [["e0", "i1", "i0", "root"]]


@pytest.fixture
def spaces(seed: int) -> Iterator[Spaces]:
    with made([ROOT, *ABOVE, *AGENTS], seed) as found:
        yield found


def started(folder: Path, seed: int, spaces: Spaces, pace: int, times: Times = TIMES) -> Run:
    tree = Tree(folder, ABOVE, times=times, hosts=spaces.hosts, within=spaces.within)
    return Run(folder, seed, visitors=1, tree=tree, pace=pace)


def test_a_partition_and_an_end_without_a_word(tmp_path: Path, seed: int, spaces: Spaces) -> None:
    times = msgspec.structs.replace(TIMES, expire=3.0)
    run = started(tmp_path, seed, spaces, 300, times)
    try:
        run.begin(READERS, WRITERS)
        spaces.be(Weather(loss=0.02, delay=0.005, reorder=0.05))
        run.progress(300)
        spaces.be(Weather(loss=0.02, delay=0.005, reorder=0.05, cut=["i0"]))
        assert wait_for(lambda: not spaces.connections(ROOT, "i0"), 2 * times.expire)
        assert wait_for(lambda: not spaces.connections("i0", ROOT), 2 * times.expire)
        spaces.be(Weather())
        run.progress(300)
        run.finish()
    finally:
        run.end()
    run.judge()


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_partitions_on_a_bad_wire(tmp_path: Path, seed: int, spaces: Spaces) -> None:
    run = started(tmp_path, seed, spaces, 200)
    chance = random.Random(f"{seed} partitions")
    partitions = int(os.environ.get("TIDINGS_PARTITIONS", "40"))
    try:
        run.begin(READERS, WRITERS)
        seconds = 0.0
        for number in range(1, partitions + 1):
            weather = Weather(chance.choice((0.0, 0.01, 0.05)), chance.choice((0.0, 0.01, 0.05)),
                              chance.choice((0.0, 0.1)))  # fmt: skip
            spaces.be(weather)
            run.progress(chance.randrange(1, 500))
            if seconds > TIMES.silent:
                run.progress_everywhere()
            weather.cut = chance.sample([ROOT, *ABOVE, *AGENTS], chance.choice((1, 1, 2)))
            long = (2 * TIMES.silent, 1.25 * TIMES.expire) if seconds < TIMES.silent else ()
            seconds = chance.choice((0.5, 1.0, *long))
            spaces.be(weather)
            time.sleep(seconds)
            run.say(f"{number:3d}. {' '.join(weather.cut):18s} cut off for {seconds:.1f} s, "
                    f"loss {weather.loss:.0%}, delay {1000 * weather.delay:.0f} ms: "
                    f"{run.board.total():,} acknowledged")  # fmt: skip
        spaces.be(Weather())
        run.finish()
    finally:
        run.end()
    run.judge()
