"""Preprocessors and their rendezvous point, killed in turn while agents of all kinds publish: each
subscriber gets exactly what `Filter.matches` says, once. TIDINGS_KILLS says how many are killed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.broker.test_preprocessors_live import kill_in_turn


@pytest.mark.slow
def test_all_but_the_router(tmp_path: Path, seed: int) -> None:
    kill_in_turn(tmp_path, seed, int(os.environ.get("TIDINGS_KILLS", "60")))
