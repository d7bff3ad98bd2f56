"""The chain from rows to agents, whose processes are killed at random moments: everything is
delivered once, and nobody gets a break.

TIDINGS_SEED replays what comes and what is killed in which order; not the moment to the
microsecond.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from tests.spark.kills.chain_run import ChainRun

pytestmark = pytest.mark.spark


@pytest.mark.slow  # `tidings bench chain` is tested with two kills
@pytest.mark.timeout(900)
def test_one_kill(tmp_path: Path, seed: int) -> None:
    """A node of the tree, or the driver at the worst moment."""
    ChainRun(tmp_path, seed).go([random.Random(seed).choice(["root", "router", "between"])])


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_sixty_kills(tmp_path: Path, seed: int) -> None:
    kinds = ["root"] * 14 + ["router"] * 14 + ["between"] * 8 + ["all"] * 6 + ["driver"] * 6
    kinds += ["jvm"] * 6 + ["worker"] * 8
    random.Random(seed).shuffle(kinds)
    run = ChainRun(tmp_path, seed)
    run.go(kinds)
    assert len(run.killed) == 62
