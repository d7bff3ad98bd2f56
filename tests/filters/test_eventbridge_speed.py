"""How long 100,000 event patterns take to load and to match, and the same filters in SQL.

docs/dialects.md has the figures. To see them:

    make bench PYTEST_ARGS="-k eventbridge --log-cli-level=INFO"
"""

from __future__ import annotations

import json
import logging
import random
import time
from typing import Any

import pyarrow as pa
import pytest

from tidings import Attributes, Filter, parse
from tidings.matching import Matcher

pytestmark = [pytest.mark.bench, pytest.mark.timeout(1800)]
log = logging.getLogger(__name__)
COUNT, EVENTS, ONE_BY_ONE = 100_000, 20_000, 5000
SOURCES = [f"aws.s{n}" for n in range(200)]
KINDS = [f"Change {n}" for n in range(500)]
STATES = [f"state-{n}" for n in range(50)]
TYPES = Attributes(
    {"source": "string", "detail-type": "string", "account": "string", "detail.state": "string",
     "detail.size": "integer", "detail.key": "string"}
)  # fmt: skip


def draw(dice: random.Random, shape: int) -> tuple[dict[str, Any], str]:
    """A pattern of one of five shapes, and the same in SQL."""
    source, kind = dice.choice(SOURCES), dice.choice(KINDS)
    one, two = dice.sample(STATES, 2)
    low, account = dice.randrange(1000), str(dice.randrange(10_000))
    if shape == 0:
        return ({"source": [source], "detail-type": [kind]},
                f"source = '{source}' AND `detail-type` = '{kind}'")  # fmt: skip
    if shape == 1:
        return ({"source": [source], "detail": {"state": [one, two]}},
                f"source = '{source}' AND detail.state IN ('{one}', '{two}')")  # fmt: skip
    if shape == 2:
        size = {"numeric": [">=", low, "<=", low + 50]}
        return ({"source": [source], "detail": {"size": [size]}},
                f"source = '{source}' AND detail.size BETWEEN {low} AND {low + 50}")  # fmt: skip
    if shape == 3:
        return ({"account": [account], "detail": {"key": [{"prefix": f"img/{low}"}]}},
                f"account = '{account}' AND startswith(detail.key, 'img/{low}')")  # fmt: skip
    state = {"anything-but": [one, two]}
    detail = {"state": [state], "key": [{"suffix": f"{low}.png"}]}
    return ({"detail-type": [kind], "detail": detail},
            f"`detail-type` = '{kind}' AND detail.state NOT IN ('{one}', '{two}') "
            f"AND endswith(detail.key, '{low}.png')")  # fmt: skip


def draw_event(dice: random.Random) -> dict[str, Any]:
    key = f"img/{dice.randrange(1000)}/{dice.randrange(1000)}.png"
    detail = {"state": dice.choice(STATES), "size": dice.randrange(1000), "key": key}
    return {"source": dice.choice(SOURCES), "detail-type": dice.choice(KINDS),
            "account": str(dice.randrange(10_000)), "detail": detail}  # fmt: skip


class Loaded:
    def __init__(self, texts: list[str], dialect: str, attributes: Attributes | None) -> None:
        before = time.process_time()
        filters: list[Filter] = [parse(t, dialect, attributes=attributes) for t in texts]
        self.parsed = time.process_time() - before
        self.matcher = Matcher(attributes)
        self.matcher.add_many(enumerate(filters))
        self.loaded = time.process_time() - before

    def one_by_one(self, events: list[dict[str, Any]]) -> tuple[float, int]:
        """Microseconds of processor time per event, and matches."""
        before = time.process_time()
        matches = sum(len(self.matcher.match(event)) for event in events)
        return (time.process_time() - before) / len(events) * 1e6, matches

    def in_batches(self, batch: pa.RecordBatch) -> float:
        before = time.process_time()
        self.matcher.match_counts(batch)
        return (time.process_time() - before) / len(batch) * 1e6


def test_patterns_are_as_fast_as_sql() -> None:
    dice = random.Random(5)
    drawn = [draw(dice, number % 5) for number in range(COUNT)]
    events = [draw_event(dice) for _ in range(EVENTS)]
    patterns, sql = [json.dumps(pattern) for pattern, _ in drawn], [text for _, text in drawn]
    ways = {
        "eventbridge": Loaded(patterns, "eventbridge", None),
        "sql": Loaded(sql, "sql", None),
        "eventbridge, declared": Loaded(patterns, "eventbridge", TYPES),
        "sql, declared": Loaded(sql, "sql", TYPES),
    }
    batch = pa.RecordBatch.from_pylist(events)
    ones: dict[str, list[float]] = {way: [] for way in ways}
    many: dict[str, list[float]] = {way: [] for way in ways}
    found: set[int] = set()
    for round_ in range(6):  # in turn, so that a busy minute falls on all; the first warms up
        for way, loaded in ways.items():
            took, matches = loaded.one_by_one(events[:ONE_BY_ONE])
            found.add(matches)
            together = loaded.in_batches(batch)
            if round_:
                ones[way].append(took)
                many[way].append(together)
    for way, loaded in ways.items():
        log.info(
            f"{way:22} parsed {loaded.parsed:5.1f} s, loaded {loaded.loaded:5.1f} s, one by one "
            f"{min(ones[way]):5.1f} us, in batches {min(many[way]):5.1f} us"
        )
    assert len(found) == 1
    assert ways["eventbridge"].loaded < 30
    assert min(ones["eventbridge"]) < 2 * min(ones["sql"])
    assert min(many["eventbridge"]) < 2 * min(many["sql"])
    assert min(ones["eventbridge, declared"]) < 1.5 * min(ones["sql, declared"])
