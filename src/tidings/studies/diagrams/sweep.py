"""The sweep: the automatic choice of the engine, compared with both engines, on mixes of narrow
filters and filters of clauses."""

from __future__ import annotations

import itertools
import random
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

from tidings.filters import Filter, parse
from tidings.matching import Matcher, batch_of
from tidings.studies.diagrams.bdd_report import SweepPoint
from tidings.studies.workloads.checking import WrongMatches
from tidings.studies.workloads.wide_filters import Event, draw_clauses, draw_event, draw_narrow

PERCENT, CLAUSES = (0, 25, 50, 75, 100), (3, 5, 7, 10, 15)
BATCH = 512
SLOW = 32  # the number of events on which the filters are evaluated one by one


def measure_sweep(
    count: int, repeats: int, rng: random.Random, note: Callable[[str], None]
) -> list[SweepPoint]:
    """Measure `count` filters at each point."""
    points = []
    for percent, clauses in itertools.product(PERCENT, CLAUSES):
        note(f"sweep: {percent} % wide, {clauses} clauses")
        points.append(_measure_point(percent, clauses, count, repeats, rng))
    return points


def _measure_point(
    percent: int, clauses: int, count: int, repeats: int, rng: random.Random
) -> SweepPoint:
    wide = count * percent // 100
    texts = [draw_clauses(rng, clauses, clauses) for _ in range(wide)]
    filters = [
        parse_wide(text) for text in (*texts, *(draw_narrow(rng) for _ in range(count - wide)))
    ]
    events = [draw_event(rng) for _ in range(BATCH)]
    batch = batch_of(events)
    few = batch.slice(0, SLOW) if percent and clauses > 6 else batch
    matchers = {engine: build_matcher(filters, engine) for engine in ("auto", "trees", "bdd")}
    found = [find_pairs(matcher, events[:SLOW]) for matcher in matchers.values()]
    if found[0] != found[1] or found[0] != found[2]:
        raise WrongMatches("the engines find different filters")
    times: dict[str, list[float]] = {engine: [] for engine in matchers}
    turns = list(matchers.items())
    for engine, matcher in itertools.chain(turns, *([turns[::-1], turns] * max(repeats, 3))):
        given = few if engine == "trees" else batch
        seconds, _ = time_of(lambda matcher=matcher, given=given: matcher.match_pairs(given))  # type: ignore[misc]
        times[engine].append(seconds / given.num_rows * 1e6)
    auto, trees, bdd = (statistics.median(times[engine]) for engine in ("auto", "trees", "bdd"))
    return SweepPoint(percent, clauses, auto, trees, bdd, auto / min(trees, bdd))


def time_of(work: Callable[[], Any]) -> tuple[float, Any]:
    """The processor seconds of a call, and its result."""
    start = time.process_time()
    found = work()
    return time.process_time() - start, found


def parse_wide(text: str) -> Filter:
    """Parse a filter, and compute its form."""
    found = parse(text)
    assert found.form is not None
    return found


def build_matcher(filters: Sequence[Filter], engine: str) -> Matcher:
    """A matcher of filters in one part; the id of a filter is its position."""
    matcher = Matcher(background=False, engine=engine)
    matcher.add_many(enumerate(filters))
    matcher.merge()
    return matcher


def find_pairs(matcher: Matcher, events: list[Event]) -> set[tuple[int, int]]:
    """The event and the filter of every match."""
    rows, ids = matcher.match_pairs(events)
    return set(zip(rows.tolist(), ids.tolist(), strict=True))
