"""Pipelines that are killed at random moments write every match once, with the right subscriptions.

TIDINGS_SEED replays what comes, what changes, and what is killed in which order; not the moment to
the microsecond.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from tests.spark.kills.run import Run
from tests.spark.kills.victims import SOURCE

pytestmark = pytest.mark.spark


@pytest.mark.slow
@pytest.mark.timeout(900)  # half a minute; much longer where other programs want the machine
def test_one_kill(tmp_path: Path, seed: int) -> None:
    """One that the stream survives, or one after which a new driver starts."""
    Run(tmp_path, seed).go([random.Random(seed).choice(["worker", "all", "jvm", "driver"])])


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_thirty_kills(tmp_path: Path, seed: int) -> None:
    kinds = ["all"] * 7 + ["driver"] * 4 + ["orphan"] * 4 + ["jvm"] * 5 + ["daemon"] * 2
    kinds += ["worker"] * 8
    random.Random(seed).shuffle(kinds)
    run = Run(tmp_path, seed)
    run.go(kinds)
    assert len(run.killed) == 30


CLUSTER = {"spark.executorEnv.PYTHONPATH": str(SOURCE), "spark.executor.memory": "1g"}


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_executors_of_a_local_cluster(tmp_path: Path, seed: int) -> None:
    kinds = ["executor"] * 4 + ["worker", "all"]
    random.Random(seed).shuffle(kinds)
    Run(tmp_path, seed, "local-cluster[2,1,2048]", **CLUSTER).go(kinds)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_workers_of_a_cluster_are_lost(tmp_path: Path, seed: int) -> None:
    kinds = ["lost"] * 3 + ["executor"] * 2 + ["driver"]
    random.Random(seed).shuffle(kinds)
    Run(tmp_path, seed, "standalone", **CLUSTER).go(kinds)
