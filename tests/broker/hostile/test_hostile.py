"""A hostile subscriber, publisher and router try all attacks at once, with ordinary tokens and
default limits. An honest publisher and subscriber must not be disturbed.

TIDINGS_HOSTILE is for how many seconds in the long run, TIDINGS_ATTACKS which attacks, with commas
between them; see attacker.py for their names.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.broker.hostile.run import ROUTERS, Run, percentile
from tests.broker.processes import tell

MEMORY = 1536  # megabytes of every process
IN_FORCE = 15.0  # seconds in which what the honest pair subscribes to comes into force


def attacked(folder: Path, seed: int, seconds: float, bound: float) -> None:
    """`bound` is for the 99th of a hundred notifications, in seconds, without the time in which
    there was no core for the nodes: see cores.py."""
    chosen = os.environ.get("TIDINGS_ATTACKS", "")
    run = Run(folder, seed, chosen.split(",") if chosen else None)
    run.go(seconds)
    tell(run.table())
    pair = run.pair()
    assert pair.wrong == []
    assert pair.lost == []
    assert len(pair.told) == len(pair.acknowledged) == pair.published
    for name in (*ROUTERS, "pair"):
        assert run.processes[name].returncode == 0, f"{name}: {run.log(name)[-2000:]}"
        assert "Traceback" not in run.log(name), f"{name}: {run.log(name)[-4000:]}"
    for name in run.attacks:
        assert run.counts(name)["strokes"], f"{name} did nothing: {run.log(name)[-2000:]}"
    assert [name for name, size in run.most.items() if size >= MEMORY] == []
    assert pair.in_force
    assert max(pair.in_force) < IN_FORCE, "see the table"
    for found in (pair.told, pair.acknowledged):
        assert percentile(run.with_cores(found), 0.99) < bound, "see the table"


@pytest.mark.slow
@pytest.mark.timeout(700)
def test_an_honest_pair_goes_on(tmp_path: Path, seed: int) -> None:
    """A short run; others may be busy on the machine."""
    attacked(tmp_path, seed, 25, bound=5.0)


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_an_honest_pair_goes_on_for_long(tmp_path: Path, seed: int) -> None:
    attacked(tmp_path, seed, float(os.environ.get("TIDINGS_HOSTILE", "600")), bound=0.25)
