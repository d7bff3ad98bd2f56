"""Routers and rendezvous points are killed at random moments: what was acknowledged is delivered
once.

TIDINGS_SEED replays what is killed in which order; not the moment to the microsecond. TIDINGS_KILLS
and TIDINGS_NOTIFICATIONS say how many there are at least in the long run, TIDINGS_PAUSE and
TIDINGS_REST for how many seconds at most something is away, and is left alone.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.broker.kills.notes import APART
from tests.broker.kills.run import AT_ROUTERS, Run
from tests.broker.kills.tree import ABOVE, Tree


@pytest.mark.slow  # with two channels, it is part of `make test`
@pytest.mark.timeout(300)
def test_one_kill(tmp_path: Path, seed: int) -> None:
    run = Run(tmp_path, seed)
    run.go(1, 1000, pause=1.0, rest=1.0)
    assert run.board.total() >= 1000


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_a_hundred_kills(tmp_path: Path, seed: int) -> None:
    _long(Run(tmp_path, seed), {})


@pytest.mark.timeout(300)
def test_one_kill_with_two_channels(tmp_path: Path, seed: int) -> None:
    """Two rendezvous points, and agents that use both channels over one link."""
    run = Run(tmp_path, seed, tree=_two_channels(tmp_path))
    run.go(1, 1000, pause=1.0, rest=1.0, **AT_ROUTERS)
    _both_published(run)


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_a_hundred_kills_with_two_channels(tmp_path: Path, seed: int) -> None:
    run = Run(tmp_path, seed, tree=_two_channels(tmp_path))
    _long(run, AT_ROUTERS)
    _both_published(run)


def _two_channels(folder: Path) -> Tree:
    return Tree(folder, ABOVE, channels=("fx", "tea"))


def _both_published(run: Run) -> None:
    for first in (0, APART):
        assert all(run.board.acknowledged(first + one) for one in range(4))


def _long(run: Run, places: dict[str, list[list[str]]]) -> None:
    kills = int(os.environ.get("TIDINGS_KILLS", "100"))
    notifications = int(os.environ.get("TIDINGS_NOTIFICATIONS", "1000000"))
    pause, rest = (
        float(os.environ.get("TIDINGS_PAUSE", "3")),
        float(os.environ.get("TIDINGS_REST", "4")),
    )
    run.go(kills, notifications, pause=pause, rest=rest, **places)
    assert run.strokes.total() >= kills
    assert run.board.total() >= notifications
