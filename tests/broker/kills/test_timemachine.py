"""Journals that are restored or damaged while agents stay connected: everything acknowledged is
delivered, or its loss is reported.

A round is determined by TIDINGS_SEED and its number; TIDINGS_ROUND plays one alone, ROUNDS of `make
timemachine` says how many there are. See tests/rounds.py.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import shutil
from pathlib import Path

import pytest
from tests.broker.kills.past import World
from tests.rounds import Results

LIFE = 11  # rounds that a tree lives
LANES = 2  # trees at a time


async def play_all(folder: Path, results: Results, life: int = LIFE) -> None:
    """Play what is to be played, some trees side by side. A tree in which something failed is left,
    and the next rounds get another."""
    lives = [
        [*group] for _, group in itertools.groupby(results.open(), lambda number: number // life)
    ]
    waiting = iter(lives)

    async def lane() -> None:
        for numbers in waiting:
            left = list(numbers)
            while left:
                home = folder / f"from-{left[0]}"
                home.mkdir()
                async with World(home, results.seed) as world:
                    failed = False
                    while left and not failed:
                        result = await world.play(left.pop(0))
                        results.put(result)
                        failed = result.failed
                if not failed:
                    shutil.rmtree(home)

    async with asyncio.TaskGroup() as group:
        for _ in range(LANES):
            group.create_task(lane())


@pytest.mark.timeout(300)
def test_a_few_rounds(tmp_path: Path, seed: int) -> None:
    results = Results("network", seed, 3, keep=False)
    asyncio.run(play_all(tmp_path, results, life=3))
    results.check()


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_all_rounds(tmp_path: Path, seed: int) -> None:
    results = Results("network", seed, int(os.environ.get("TIDINGS_ROUNDS", "440")))
    asyncio.run(play_all(tmp_path, results))
    results.check()
