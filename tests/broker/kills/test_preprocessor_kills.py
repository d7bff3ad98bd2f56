"""Preprocessors and their rendezvous point, killed in any order while subscriptions come and go and
agents of all kinds publish: each subscriber gets exactly what its filter says, once.
TIDINGS_KILLS says how many are killed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.broker.kills.coming_and_going import come_and_go


def test_a_few(tmp_path: Path, seed: int) -> None:
    come_and_go(tmp_path, seed, 3)


@pytest.mark.slow
def test_many(tmp_path: Path, seed: int) -> None:
    come_and_go(tmp_path, seed, int(os.environ.get("TIDINGS_KILLS", "60")))
