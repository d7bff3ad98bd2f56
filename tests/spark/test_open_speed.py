"""What rows cost whose fields are not declared (docs/pipelines.md, `extra`). To see the figures:

make bench PYTEST_ARGS="-k open_speed --log-cli-level=INFO"
"""

from __future__ import annotations

import json
import logging
import random
import time
from typing import Any

import pyarrow as pa
import pytest

from tidings import Snapshot
from tidings.notifications import decode_json
from tidings.spark.outbox.batches.open_fields import match_open

pytestmark = pytest.mark.bench

log = logging.getLogger(__name__)
ROWS, FILTERS, ROUNDS = 20_000, 1_000, 3
SCHEMA = pa.schema(
    [(f"i{at}", pa.int64()) for at in range(8)] + [(f"s{at}", pa.string()) for at in range(8)]
)


def test_undeclared_fields_cost_little(seed: int) -> None:
    rng = random.Random(seed)
    rows = [
        {f"i{at}": rng.randrange(1000) for at in range(8)}
        | {f"s{at}": f"x{rng.randrange(1000)}" for at in range(8)}
        for _ in range(ROWS)
    ]
    mixed = [row | {"i0": "text"} if at % 100 == 0 else row for at, row in enumerate(rows)]
    filters = {
        at: f"i{at % 8} = {rng.randrange(1000)} AND s{at * 3 % 8} = 'x{rng.randrange(1000)}'"
        if at % 2
        else f"i{at % 8} > {990 + rng.randrange(10)}"
        for at in range(FILTERS)
    }
    view = Snapshot.build(filters).view

    def cost(rows: list[dict[str, Any]], schema: pa.Schema) -> tuple[float, int]:
        """Microseconds of processor time per row, at best, and the number of matches."""
        lines, best, found = pa.array(map(json.dumps, rows)), float("inf"), 0
        for _ in range(ROUNDS):
            start = time.process_time()
            decoded = decode_json(lines, schema, extra="open")
            starts, _ = match_open(view, decoded.good, decoded.extra)
            best, found = min(best, time.process_time() - start), int(starts[-1])
        return best / ROWS * 1e6, found

    declared, expected = cost(rows, SCHEMA)
    undeclared, found = cost(rows, pa.schema([]))
    several, _ = cost(mixed, pa.schema([]))
    log.info(
        "us per row: %.1f declared, %.1f not declared, %.1f with values of several types",
        declared, undeclared, several,
    )  # fmt: skip
    assert found == expected
    assert undeclared < 30 * declared
    assert several < 60 * declared
