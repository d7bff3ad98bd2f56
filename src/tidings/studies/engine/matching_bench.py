"""Measures the matching engine on a workload: build, batches, single events, memory, growth.

Every run first checks the engine's matches; an engine with wrong matches is not measured. Times are
medians over repeats, in microseconds per event, after a warm-up that compiles kernels and lets the
engine adapt to the events.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from tidings.filters import parse
from tidings.model import EnvironmentProblem
from tidings.studies.engine.growth import match_growth
from tidings.studies.engine.match_report import (
    Evaluations,
    GrowthExponent,
    Latency,
    MatchReport,
    MatchRun,
    Timing,
)
from tidings.studies.engine.shared_tests import count_tests
from tidings.studies.host.machine_info import describe_machine
from tidings.studies.workloads.checking import Reference, WrongMatches
from tidings.studies.workloads.draws import BLOCK
from tidings.studies.workloads.json_lines import parse_lines
from tidings.studies.workloads.workloads import Workload, make_workload

MOST_SINGLE = 5_000  # events that are matched one by one
WARM_SINGLE = 200


class Engine(Protocol):
    """The interface that is measured; it is the interface of tidings.Matcher."""

    def add_many(self, pairs: Iterable[tuple[Hashable, str]]) -> Any: ...

    def match(self, event: Any) -> list[Any]: ...

    def match_pairs(self, events: Any, *, threads: int = 1) -> tuple[Any, Any]: ...

    def match_batch(self, events: Any, *, threads: int = 1) -> Any: ...

    def stats(self) -> Mapping[str, Any]: ...


def bench_matching(
    names: Sequence[str],
    sizes: Sequence[int],
    *,
    events: int | None = None,
    batch: int = BLOCK,
    threads: Sequence[int] = (1,),
    repeats: int = 5,
    sample: int = 50,
    tests: int = 0,
    seed: int = 1,
    engine: Callable[[], Engine] | None = None,
    note: Callable[[str], None] = lambda _: None,
) -> MatchReport:
    """Measure each workload with each number of filters, on each number of threads.

    By default there is one batch for each thread. For the first `tests` events, the tests that are
    evaluated are counted. `note` is called with each step.
    """
    where = describe_machine()
    make = engine or new_matcher
    events = events or batch * max(threads)
    runs: list[MatchRun] = []
    growth: list[GrowthExponent] = []
    for name in names:
        mine: list[MatchRun] = []
        for size in sizes:
            say = _prefix_note(note, f"{name}, {size:,} filters")
            say("drawing filters and events")
            workload = make_workload(name, size, events, seed)
            mine += measure(
                make(), workload, batch=batch, threads=threads, repeats=repeats, sample=sample,
                tests=tests, note=say,
            )  # fmt: skip
        runs += mine
        if len(set(sizes)) > 1:
            growth += [
                match_growth([run for run in mine if run.threads == count]) for count in threads
            ]
    return MatchReport(where, runs, growth)


def measure(
    engine: Engine,
    workload: Workload,
    *,
    batch: int,
    threads: Sequence[int] = (1,),
    repeats: int,
    sample: int,
    tests: int = 0,
    note: Callable[[str], None] = lambda _: None,
) -> list[MatchRun]:
    """Add the filters of a workload to an engine, check the engine, and measure a run for each
    number of threads.

    With several threads, each call matches one batch per thread.
    """
    count = workload.events.num_rows
    note("asking the reference")
    reference = Reference(workload, sample)
    note("building")
    build = _fill_engine(engine, workload)
    note("compiling and checking")
    start = workload.batches(batch * threads[0])[0]
    first = _seconds(lambda: engine.match_pairs(start, threads=threads[0]))
    found = 0
    for number in threads:
        check_engine(engine, workload, reference, number)
        pieces = workload.batches(batch * number)
        total = sum(len(engine.match_pairs(piece, threads=number)[0]) for piece in pieces)
        if found and total != found:
            raise WrongMatches(
                f"found {total:,} matches with {number} threads, expected {found:,}, the number "
                f"found with {threads[0]}"
            )
        found = total
    settle(engine)

    lines = workload.event_lines()
    ways = [_ways(engine, workload, lines, batch * number, number) for number in threads]
    times = [_time_in_turn(same, repeats, count, note) for same in zip(*ways, strict=True)]
    settle(engine)
    note("single events")
    single = min(MOST_SINGLE, count)
    one_dict = latency(engine.match, workload.events.slice(0, single).to_pylist(), repeats)
    one_json = latency(engine.match, lines[:single], repeats)
    index_bytes = engine.stats().get("index_bytes")
    per_filter = None if index_bytes is None else index_bytes / len(workload.filters)
    counted = None
    if tests:
        note("counting tests")
        counted = _count_tests(engine, workload, min(tests, count))
    runs = []
    for at, number in enumerate(threads):
        pairs, lists, json_batches, counts = (same[at] for same in times)
        runs.append(
            MatchRun(
                workload=workload.name,
                filters=len(workload.filters),
                events=count,
                batch=batch,
                threads=number,
                repeats=repeats,
                seed=workload.seed,
                build_seconds=build,
                filters_per_second=len(workload.filters) / build,
                first_batch_seconds=first,
                index_bytes=index_bytes,
                bytes_per_filter=per_filter,
                matches_per_event=found / count,
                pairs=pairs,
                lists=lists,
                counts=counts if _counter_of(engine) else None,
                json_batches=json_batches,
                one_dict=one_dict,
                one_json=one_json,
                checked_events=len(reference.events),
                checked_evaluations=reference.evaluations,
                tests=counted,
            )
        )
    return runs


def _prefix_note(note: Callable[[str], None], run: str) -> Callable[[str], None]:
    return lambda text: note(f"{run}: {text}")


def _counter_of(engine: Engine) -> Callable[..., Any] | None:
    """The engine's function that only counts matches, if it has one."""
    return getattr(engine, "match_counts", None)


def _count_tests(engine: Engine, workload: Workload, events: int) -> Evaluations | None:
    """The tests evaluated for the first events; None if the engine does not count them."""
    effort = getattr(engine, "effort", None)
    if effort is None:
        return None
    forms = (parse(text).form for _, text in workload.texts())
    return count_tests(forms, workload.events.slice(0, events).to_pylist(), effort)


def _ways(
    engine: Engine, workload: Workload, lines: Sequence[bytes], size: int, threads: int
) -> list[Callable[[], None]]:
    """The methods of matching all events of a workload in batches: with pairs as the result, with
    lists as the result, from JSON, and only counting."""
    batches = workload.batches(size)
    texts = [b"\n".join(lines[at : at + size]) for at in range(0, len(lines), size)]
    schema = workload.events.schema
    count_matches = _counter_of(engine)

    def pairs() -> None:
        for piece in batches:
            engine.match_pairs(piece, threads=threads)

    def lists() -> None:
        for piece in batches:
            engine.match_batch(piece, threads=threads)

    def from_json() -> None:
        for text in texts:
            engine.match_pairs(parse_lines(text, schema), threads=threads)

    def counts() -> None:
        if count_matches is not None:
            for piece in batches:
                count_matches(piece, threads=threads)

    return [pairs, lists, from_json, counts]


def _fill_engine(engine: Engine, workload: Workload) -> float:
    texts = list(workload.texts())
    gc.collect()
    return _seconds(lambda: engine.add_many(texts))


def check_engine(
    engine: Engine, workload: Workload, reference: Reference, threads: int = 1
) -> None:
    """Raise WrongMatches unless all methods of matching find the expected matches."""
    piece = workload.batches(len(reference.events))[0]
    events, ids = engine.match_pairs(piece, threads=threads)
    grouped: list[list[object]] = [[] for _ in reference.events]
    for event, id_ in zip(_to_list(events), _to_list(ids), strict=True):
        grouped[event].append(id_)
    reference.check(grouped, "match_pairs")
    reference.check(_to_list(engine.match_batch(piece, threads=threads)), "match_batch")
    count_matches = _counter_of(engine)
    if count_matches is not None:
        counts = _to_list(count_matches(piece, threads=threads))
        if counts != [len(ids) for ids in grouped]:
            raise WrongMatches(f"match_counts returns {counts[:5]}..., unlike match_pairs")
    reference.check([engine.match(event) for event in reference.events], "match of a dict")
    reference.check([engine.match(line) for line in reference.lines], "match of JSON")


def latency(match: Callable[[Any], object], events: Sequence[Any], repeats: int) -> Latency:
    """Time single events, one after another."""
    for event in events[:WARM_SINGLE]:
        match(event)
    halves, tails = [], []
    clock = time.perf_counter_ns
    spent = np.empty(len(events), np.int64)
    for _ in range(repeats):
        gc.collect()
        for number, event in enumerate(events):
            start = clock()
            match(event)
            spent[number] = clock() - start
        half, tail = np.percentile(spent, [50, 99])
        halves.append(float(half) / 1000)
        tails.append(float(tail) / 1000)
    return Latency(statistics.median(halves), statistics.median(tails), len(events))


def new_matcher() -> Engine:
    """An empty tidings.Matcher."""
    try:
        from tidings.matching import Matcher
    except ImportError as problem:
        raise EnvironmentProblem(f"tidings.Matcher can't be loaded: {problem}") from problem
    return Matcher()


def settle(engine: Engine) -> None:
    """Make an engine finish its background work."""
    merge = getattr(engine, "merge", None)
    if merge is not None:
        merge()


def _time_in_turn(
    ways: Sequence[Callable[[], None]], repeats: int, events: int, note: Callable[[str], None]
) -> list[Timing]:
    """Time each method in turn, so that a busy minute of the machine affects all of them.

    Each method runs once before it is timed, because its first run has to allocate memory from the
    system.
    """
    spent: list[list[float]] = [[] for _ in ways]
    for way in ways:
        way()
    for number in range(repeats):
        note(f"batches, repeat {number + 1} of {repeats}")
        for way, times in zip(ways, spent, strict=True):
            gc.collect()
            times.append(_seconds(way) * 1e6 / events)
    return [Timing(statistics.median(times), min(times), max(times)) for times in spent]


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _to_list(values: Any) -> list[Any]:
    """The Python values of an Arrow or NumPy array."""
    return list(values.to_pylist() if hasattr(values, "to_pylist") else values.tolist())
