"""The figures that the pages quote, measured.

docs/decisions/009-a-parser-of-our-own.md has those of parsing, docs/content-graph.md those of the
graph. To see them:

    make bench PYTEST_ARGS="-k figures --log-cli-level=INFO"
"""

from __future__ import annotations

import logging
import random
import statistics
import time
from collections.abc import Callable

import pytest
import sqlglot

from tidings import ContentGraph, Filter, parse
from tidings.filters.dialects import Context, read
from tidings.filters.dialects.sql.dialect import parse_fully

pytestmark = pytest.mark.bench

log = logging.getLogger(__name__)

SIX_TESTS = (
    "symbol = 'SNE' AND price > 90.5 AND volume BETWEEN 1000 AND 5000 "
    "AND exchange IN ('NYSE', 'NASDAQ') AND name LIKE 'So%' AND bid IS NOT NULL"
)


def micros_each(works: dict[str, Callable[[], object]], times: int = 300) -> dict[str, float]:
    """Microseconds per call: the medians of nine rounds, in each of which all take their turn."""
    rounds: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(9):
        for name, work in works.items():
            start = time.perf_counter()
            for _ in range(times):
                work()
            rounds[name].append((time.perf_counter() - start) / times * 1e6)
    return {name: statistics.median(each) for name, each in rounds.items()}


def test_parsing_figures() -> None:
    context = Context()
    figures = micros_each(
        {
            "text to expression": lambda: parse_fully(SIX_TESTS, context),
            "text to expression, the short way": lambda: read(SIX_TESTS, "sql", context),
            "text to canonical form and identity": lambda: parse(SIX_TESTS).key,
            "sqlglot": lambda: sqlglot.parse_one(SIX_TESTS, read="spark"),
        }
    )
    for name, micros in figures.items():
        log.info("%s: %.0f us", name, micros)
    assert figures["text to expression"] < figures["sqlglot"], "then take sqlglot"


def random_filter(rng: random.Random) -> Filter:
    """One to four tests over ten attributes: even ones are skewed strings, odd ones integers."""
    tests = []
    for attribute in rng.sample(range(10), rng.randint(1, 4)):
        if attribute % 2 == 0:
            tests.append(f"s{attribute} = '{random_word(rng)}'")
        else:
            low = rng.randint(0, 9999)
            high = min(9999, low + rng.randint(0, 2000))
            tests.append(f"n{attribute} BETWEEN {low} AND {high}")
    return parse(" AND ".join(tests))


def random_word(rng: random.Random) -> str:
    return f"v{min(999, int(rng.paretovariate(0.3)))}"


def random_event(rng: random.Random) -> dict[str, object]:
    return {
        **{f"s{attribute}": random_word(rng) for attribute in range(0, 10, 2)},
        **{f"n{attribute}": rng.randint(0, 9999) for attribute in range(1, 10, 2)},
    }


@pytest.mark.parametrize("count", [1_000, 10_000])
def test_graph_figures(count: int, seed: int) -> None:
    rng = random.Random(seed)
    filters = [random_filter(rng) for _ in range(count)]
    for one in filters:
        assert one.key
    start = time.perf_counter()
    graph = ContentGraph(filters)
    insert = (time.perf_counter() - start) / count * 1e6
    events = [random_event(rng) for _ in range(300)]
    start = time.perf_counter()
    matched = [graph.matching(event) for event in events]
    match = (time.perf_counter() - start) / len(events) * 1e6
    nodes = list(graph)
    gone = rng.sample(nodes, 300)
    start = time.perf_counter()
    for node in gone:
        graph.remove(node)
    remove = (time.perf_counter() - start) / len(gone) * 1e6
    log.info("%s filters, %s nodes", f"{count:,}", f"{len(nodes):,}")
    log.info("insert %.0f us, matching %.0f us, remove %.0f us", insert, match, remove)
    log.info("nodes per event: %.0f", statistics.mean(map(len, matched)))
    for event, found in zip(events[:20], matched, strict=False):
        assert found == [node for node in nodes if node.filter.matches(event)]
