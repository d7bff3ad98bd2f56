"""Wide filters at a rendezvous point: placing them leaves the event loop its turns, and no turn
gets longer because the compiled ones are diagrams."""

from __future__ import annotations

import asyncio
import os
import random
import time
from pathlib import Path

import msgspec
import pytest
from tests.broker.networks import BRIEF, started, stopped
from tests.broker.processes import tell

from tidings.broker import RootNode
from tidings.channel.interests import compiled, load_interest_kernels, nodes
from tidings.store import Asked
from tidings.studies.workloads.wide_filters import draw_clauses, draw_event

FILTERS = int(os.environ.get("TIDINGS_WIDE", "1000"))
AFTER = 300  # turns that are measured after the compiled nodes are in use
ROUNDS = 2  # of each engine, in turns


class Turns(msgspec.Struct):
    """Milliseconds of processor time of this process from one turn to the next, in which the loop
    sleeps for one: what other threads compute meanwhile, and so what the loop waits for the
    interpreter, counts; what other processes do does not."""

    placing: list[float] = []
    used: list[float] = []

    def row(self, name: str) -> str:
        shown = (
            f"{part(some, 0.5):7.2f} {part(some, 0.99):7.2f} {max(some):8.2f}"
            for some in (self.placing, self.used)
        )
        return f"{name:8} " + "   ".join(shown)


def part(values: list[float], share: float) -> float:
    return sorted(values)[int(share * (len(values) - 1))]


async def measure(root: RootNode, rng: random.Random, found: Turns) -> int:
    """Place filters, and tag a notification in each turn, until they are compiled and in use;
    return how many of them are diagrams then."""
    asked = [Asked(f"w{at}", draw_clauses(rng, 8, 12), "sql") for at in range(FILTERS)]
    contents = [msgspec.json.encode(draw_event(rng)) for _ in range(64)]
    interests = root.machine.interests
    tagged = [set(interests.tag(one)) for one in contents[:4]]
    loading = asyncio.wrap_future(root._commands.take(asked))
    number = 0
    while not loading.done() or not root._recompiling.count:
        await turn(root, contents[number % 64], found.placing)
        number += 1
    await loading
    for number in range(AFTER):
        await turn(root, contents[number % 64], found.used)
    assert tagged != [set(interests.tag(one)) for one in contents[:4]]
    return int(interests._nodes.compiled.matcher.stats()["diagrams"])  # type: ignore[attr-defined]


async def turn(root: RootNode, content: bytes, times: list[float]) -> None:
    before = time.process_time()
    await asyncio.sleep(0.001)
    root.machine.interests.tag(content)
    times.append(1000 * (time.process_time() - before))


@pytest.mark.bench
@pytest.mark.timeout(1800)
def test_no_turn_gets_longer(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes, "LEAST", FILTERS // 2)
    load_interest_kernels()
    turns = {"trees": Turns(), "saved": Turns()}

    async def work(engine: str, number: int) -> None:
        monkeypatch.setattr(compiled, "COMPILED_ENGINE", engine)
        folder = tmp_path / f"{engine}{number}"
        folder.mkdir()
        network = await started(folder, 0, BRIEF)
        counts = await measure(network[0], random.Random(f"{seed} {number}"), turns[engine])
        assert (counts > 0) is (engine == "saved")
        await stopped(network)

    for number in range(ROUNDS):
        for engine in turns:
            asyncio.run(work(engine, number))
    head = f"{'':8}  placing: p50, p99, longest     compiled: p50, p99, longest (ms)"
    tell("\n".join(["", head, *(one.row(name) for name, one in turns.items())]))
    without, with_diagrams = turns["trees"], turns["saved"]
    assert part(without.placing, 0.99) < 80  # one filter in each turn, with its tag
    assert part(with_diagrams.placing, 0.99) < 1.2 * part(without.placing, 0.99)
    assert part(with_diagrams.used, 0.99) < 1.2 * part(without.used, 0.99)
