"""The processor time of a rendezvous point for notifications that are handed over in parts, with
10,000 filters, checkpoints of the journal included. docs/performance.md quotes the figures:

    pytest -m bench --log-cli-level=INFO tests/broker/test_parts_speed.py
"""

from __future__ import annotations

import logging
import random
import statistics
import time
from pathlib import Path

import numpy as np
import pytest
from tests.broker.test_runs_speed import Bench

from tidings.broker.outgoing_frames.block_frames import join_frames
from tidings.channel import Part
from tidings.routing.protocol import messages as m
from tidings.routing.root import Piece

pytestmark = pytest.mark.bench

log = logging.getLogger(__name__)
ROUNDS = 5
ROWS = 16_384
PARTS = 16  # in a round; together more than the bytes between two checkpoints


def test_the_time_of_each_with_checkpoints(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    machine, journal = bench.machine, bench.journal
    found = (tuple(sorted(machine.interests.tag(line))) for line in bench.lines)
    tags = [tag for tag in found if tag]
    chance = random.Random(1)
    rows = [chance.choice(tags) for _ in range(ROWS)]
    starts = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    nodes = np.array([node for tag in rows for node in tag], np.int64)
    history = machine.history

    def hand_over(batch: int) -> None:
        part = Part(
            "bench", batch, 0, True, history.life, history.version, starts, nodes,
            200 * np.arange(ROWS + 1), bytes(200 * ROWS),
        )  # fmt: skip
        message = part.message()
        assert isinstance(message, m.HandOver)
        for piece in machine.split(message):
            assert isinstance(piece, Piece), "the part is valid"
            machine.receive("pipeline", piece, 0.0)
        stored = journal.take()
        assert stored is not None
        journal.write(stored)
        (taken,) = (one for _, one in machine.mark_stored(stored.upto, 0.0)
                    if isinstance(one, m.Taken))  # fmt: skip
        assert not taken.refusal
        released, machine.released = machine.released, []
        told = 0
        for run in join_frames(released):
            bench.forwarder.forward(run.data, run.starts, run.ends)
            told += len(run.starts)
        assert told == ROWS

    hand_over(0)
    times = []
    for at in range(ROUNDS):
        before = time.process_time()
        for batch in range(PARTS):
            hand_over(1 + at * PARTS + batch)
        times.append((time.process_time() - before) / (PARTS * ROWS) * 1e6)
    log.info("%.2f us each (%.2f to %.2f)", statistics.median(times), min(times), max(times))
