"""How fast lines are decoded, and that a bad one costs little. To see the figures:

make bench PYTEST_ARGS="-k notifications --log-cli-level=INFO"
"""

from __future__ import annotations

import json
import logging
import random
import time
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from tidings.notifications import Decoded, decode_json, decode_text_columns

pytestmark = pytest.mark.bench

log = logging.getLogger(__name__)

LINES = 65_536
SCHEMA = pa.schema(
    [(f"i{at}", pa.int64()) for at in range(5)]
    + [(f"d{at}", pa.float64()) for at in range(5)]
    + [(f"s{at}", pa.string()) for at in range(5)]
    + [("b0", pa.bool_()), ("b1", pa.bool_()), ("day", pa.date32())]
    + [(f"t{at}", pa.timestamp("us", "UTC")) for at in range(2)]
)
NESTED = pa.schema(
    [
        ("id", pa.int64()),
        ("user", pa.struct([(name, SCHEMA.field(name).type) for name in ("i0", "s0", "day")])),
        ("tags", pa.list_(pa.string())),
        ("legs", pa.list_(pa.struct([("s1", pa.string()), ("d1", pa.float64())]))),
    ]
)


def row(rng: random.Random) -> dict[str, Any]:
    day = f"2013-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"
    return (
        {f"i{at}": rng.randrange(1_000_000) for at in range(5)}
        | {f"d{at}": rng.random() * 1000 for at in range(5)}
        | {f"s{at}": f"{rng.choice(['JFK', 'LGA', 'hello world'])}{rng.randrange(1000)}"
           for at in range(5)}
        | {"b0": rng.random() < 0.5, "b1": True, "day": day}
        | {f"t{at}": f"{day}T{rng.randrange(24):02}:{rng.randrange(60):02}:12Z" for at in range(2)}
    )  # fmt: skip


def nested(flat: dict[str, Any]) -> dict[str, Any]:
    leg = {"s1": flat["s1"], "d1": flat["d1"]}
    user = {name: flat[name] for name in ("i0", "s0", "day")}
    return {"id": flat["i1"], "user": user, "tags": [flat["s2"], "x"], "legs": [leg, leg]}


def lines_of(rows: list[dict[str, Any]]) -> Any:
    return pa.array([json.dumps(one) for one in rows])


def figure(name: str, work: Callable[[], Decoded]) -> float:
    """Seconds of the processor: the best of five."""
    best = float("inf")
    for _ in range(5):
        start = time.process_time()
        decoded = work()
        best = min(best, time.process_time() - start)
    log.info("%s: %.0f lines/s, %d bad", name, LINES / best, len(decoded.reasons))
    return best


def test_figures_of_decoding(seed: int) -> None:
    rng = random.Random(seed)
    rows = [row(rng) for _ in range(LINES)]
    lines = lines_of(rows)
    numbers = [name for name in SCHEMA.names if name[0] in "id" and name != "day"]
    quoted = lines_of([one | {name: str(one[name]) for name in numbers} for one in rows])
    rows[LINES // 2] = rows[0] | {"i3": "many"}
    one_bad = lines_of(rows)
    cut = pa.array([line[:-9] for line in lines.to_pylist()])
    texts = pa.RecordBatch.from_pylist(
        [{name: str(value) for name, value in one.items()} for one in rows]
    )
    deep = lines_of([nested(one) for one in rows])

    good = figure("flat, all good", lambda: decode_json(lines, SCHEMA))
    figure("flat, unknown kept out", lambda: decode_json(lines, SCHEMA, extra="drop"))
    bad = figure("flat, one bad", lambda: decode_json(one_bad, SCHEMA))
    figure("flat, numbers in quotes", lambda: decode_json(quoted, SCHEMA))
    figure("flat, every line cut off", lambda: decode_json(cut, SCHEMA))
    figure("nested", lambda: decode_json(deep, NESTED))
    figure("columns of text", lambda: decode_text_columns(texts, SCHEMA))
    assert bad < 2 * good
