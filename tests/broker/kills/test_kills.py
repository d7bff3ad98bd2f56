"""Routers and rendezvous points that are killed at random moments: what was acknowledged is told,
once.

TIDINGS_SEED replays what is killed in which order; not the moment to the microsecond. TIDINGS_KILLS
and TIDINGS_NOTIFICATIONS say how many there are at least in the long run, TIDINGS_PAUSE and
TIDINGS_REST for how many seconds at most something is away, and is left alone.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.broker.kills.run import Run


@pytest.mark.timeout(300)
def test_one_kill(tmp_path: Path, seed: int) -> None:
    run = Run(tmp_path, seed)
    run.go(1, 1000, pause=1.0, rest=1.0)
    assert run.board.total() >= 1000


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_a_hundred_kills(tmp_path: Path, seed: int) -> None:
    kills = int(os.environ.get("TIDINGS_KILLS", "100"))
    notifications = int(os.environ.get("TIDINGS_NOTIFICATIONS", "1000000"))
    pause, rest = (
        float(os.environ.get("TIDINGS_PAUSE", "3")),
        float(os.environ.get("TIDINGS_REST", "4")),
    )
    run = Run(tmp_path, seed)
    run.go(kills, notifications, pause=pause, rest=rest)
    assert run.strokes.total() >= kills
    assert run.board.total() >= notifications
