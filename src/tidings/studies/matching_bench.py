"""Measures the matching engine on a workload: build, batches, single events, memory, growth.

Every run checks the engine's matches first; one that is wrong is not measured. Times are medians
over repeats, in microseconds per event, after a warm-up in which kernels are compiled and the
engine sees what the events are like.
"""

from __future__ import annotations

import gc
import io
import os
import platform
import statistics
import time
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import msgspec
import numpy as np
import pyarrow as pa
from pyarrow import json as arrow_json

from tidings.model import EnvironmentProblem
from tidings.studies.checking import Reference
from tidings.studies.draws import BLOCK
from tidings.studies.workloads import Workload, make_workload

MOST_SINGLE = 5_000  # events that are matched one by one
WARM_SINGLE = 200


class Engine(Protocol):
    """What is measured: the public face of tidings.Matcher."""

    def add_many(self, pairs: Iterable[tuple[Hashable, str]]) -> Any: ...

    def match(self, event: Any) -> list[Any]: ...

    def match_pairs(self, events: Any, *, threads: int = 1) -> tuple[Any, Any]: ...

    def match_batch(self, events: Any, *, threads: int = 1) -> Any: ...

    def stats(self) -> Mapping[str, Any]: ...


class Timing(msgspec.Struct, frozen=True):
    """Microseconds per event over the repeats."""

    median: float
    best: float
    worst: float


class Latency(msgspec.Struct, frozen=True):
    """Microseconds of single events: percentiles of each repeat, then the median of those."""

    p50: float
    p99: float
    events: int


class MatchRun(msgspec.Struct, frozen=True):
    """What was measured for one number of filters."""

    workload: str
    filters: int
    events: int
    batch: int
    threads: int
    seed: int
    build_seconds: float
    filters_per_second: float
    first_batch_seconds: float
    """The first batch of all, kernels' compilation included."""
    index_bytes: int | None
    bytes_per_filter: float | None
    matches_per_event: float
    pairs: Timing
    """Encoding and joining, with the pairs of event and filter."""
    lists: Timing
    """The same with a list of ids per event."""
    counts: Timing | None
    """Only how many match, where the engine can tell: the cost without writing matches out."""
    json_batches: Timing
    """Pairs again, with JSON lines parsed to record batches first."""
    one_dict: Latency
    one_json: Latency
    checked_events: int
    checked_evaluations: int


class Growth(msgspec.Struct, frozen=True):
    """The exponent e of time ~ filters**e over the sizes of one workload."""

    workload: str
    smallest: int
    largest: int
    pairs: float
    lists: float
    counts: float | None
    one_dict: float


class Machine(msgspec.Struct, frozen=True):
    """Where it was measured."""

    system: str
    processors: int
    python: str
    numpy: str
    pyarrow: str
    load: float | None
    """Processes that wanted to run during the last minute, at the start."""


class MatchReport(msgspec.Struct, frozen=True):
    """All runs, with how the time grows from the smallest to the largest."""

    machine: Machine
    runs: list[MatchRun]
    growth: list[Growth]


def bench_matching(
    names: Sequence[str],
    sizes: Sequence[int],
    *,
    events: int = BLOCK,
    batch: int = BLOCK,
    threads: int = 1,
    repeats: int = 5,
    sample: int = 50,
    seed: int = 1,
    engine: Callable[[], Engine] | None = None,
    note: Callable[[str], None] = lambda _: None,
) -> MatchReport:
    """Measure each workload with each number of filters. `note` is told what is being done."""
    where = machine()
    make = engine or new_matcher
    runs: list[MatchRun] = []
    growth: list[Growth] = []
    for name in names:
        for size in sizes:
            note(f"{name}, {size:,} filters")
            workload = make_workload(name, size, events, seed)
            runs.append(
                measure(
                    make(), workload, batch=batch, threads=threads, repeats=repeats, sample=sample
                )
            )
        mine = [run for run in runs if run.workload == name]
        if len(set(sizes)) > 1:
            growth.append(grown(mine))
    return MatchReport(where, runs, growth)


def measure(
    engine: Engine, workload: Workload, *, batch: int, threads: int, repeats: int, sample: int
) -> MatchRun:
    """Fill an engine with the filters of a workload, check it, and measure it.

    With several threads the engine is handed that many batches at once.
    """
    batches = workload.batches(batch * threads)
    count = workload.events.num_rows
    reference = Reference(workload, sample)

    build = _filling(engine, workload)
    first = _seconds(lambda: engine.match_pairs(batches[0], threads=threads))
    check_engine(engine, workload, reference, threads)
    found = sum(len(engine.match_pairs(piece, threads=threads)[0]) for piece in batches)
    settle(engine)

    lines = workload.event_lines()
    texts_of_batches = [
        b"\n".join(lines[at : at + batch * threads]) for at in range(0, count, batch * threads)
    ]
    schema = workload.events.schema
    count_matches = getattr(engine, "match_counts", None)

    def pairs() -> None:
        for piece in batches:
            engine.match_pairs(piece, threads=threads)

    def lists() -> None:
        for piece in batches:
            engine.match_batch(piece, threads=threads)

    def from_json() -> None:
        for text in texts_of_batches:
            engine.match_pairs(parse_lines(text, schema), threads=threads)

    def counts() -> None:
        if count_matches is not None:
            for piece in batches:
                count_matches(piece, threads=threads)

    times = _alternated([pairs, lists, from_json, counts], repeats, count)
    settle(engine)
    single = min(MOST_SINGLE, count)
    rows = workload.events.slice(0, single).to_pylist()
    index_bytes = engine.stats().get("index_bytes")
    return MatchRun(
        workload=workload.name,
        filters=len(workload.filters),
        events=count,
        batch=batch,
        threads=threads,
        seed=workload.seed,
        build_seconds=build,
        filters_per_second=len(workload.filters) / build,
        first_batch_seconds=first,
        index_bytes=index_bytes,
        bytes_per_filter=None if index_bytes is None else index_bytes / len(workload.filters),
        matches_per_event=found / count,
        pairs=times[0],
        lists=times[1],
        counts=None if count_matches is None else times[3],
        json_batches=times[2],
        one_dict=latency(engine.match, rows, repeats),
        one_json=latency(engine.match, lines[:single], repeats),
        checked_events=len(reference.events),
        checked_evaluations=reference.evaluations,
    )


def _filling(engine: Engine, workload: Workload) -> float:
    texts = list(workload.texts())
    gc.collect()
    return _seconds(lambda: engine.add_many(texts))


def check_engine(
    engine: Engine, workload: Workload, reference: Reference, threads: int = 1
) -> None:
    """Refuse an engine whose matches are not the expected ones, in any of the ways to ask."""
    piece = workload.batches(len(reference.events))[0]
    events, ids = engine.match_pairs(piece, threads=threads)
    grouped: list[list[object]] = [[] for _ in reference.events]
    for event, id_ in zip(_plain(events), _plain(ids), strict=True):
        grouped[event].append(id_)
    reference.check(grouped, "match_pairs")
    reference.check(_plain(engine.match_batch(piece, threads=threads)), "match_batch")
    reference.check([engine.match(event) for event in reference.events], "match of a dict")
    reference.check([engine.match(line) for line in reference.lines], "match of JSON")


def latency(match: Callable[[Any], object], events: Sequence[Any], repeats: int) -> Latency:
    """Time single events, one after the other."""
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


def grown(runs: Sequence[MatchRun]) -> Growth:
    """How the times of runs that differ in the number of filters grow."""
    sizes = [run.filters for run in runs]
    counted = [run.counts.median for run in runs if run.counts is not None]
    return Growth(
        workload=runs[0].workload,
        smallest=min(sizes),
        largest=max(sizes),
        pairs=exponent(sizes, [run.pairs.median for run in runs]),
        lists=exponent(sizes, [run.lists.median for run in runs]),
        counts=exponent(sizes, counted) if len(counted) == len(sizes) else None,
        one_dict=exponent(sizes, [run.one_dict.p50 for run in runs]),
    )


def exponent(sizes: Sequence[int], times: Sequence[float]) -> float:
    """The slope of the line through the points in a plot with logarithmic axes."""
    x, y = np.log(np.asarray(sizes, float)), np.log(np.asarray(times, float))
    x = x - x.mean()
    return float((x * y).sum() / (x * x).sum())


def new_matcher() -> Engine:
    """An empty tidings.Matcher."""
    try:
        from tidings.matching import Matcher
    except ImportError as problem:
        raise EnvironmentProblem(f"tidings.Matcher can't be loaded: {problem}.") from problem
    return Matcher()


def settle(engine: Engine) -> None:
    """Have an engine do now what it would do in the background."""
    merge = getattr(engine, "merge", None)
    if merge is not None:
        merge()


def schema_of_lines(text: bytes) -> pa.Schema:
    """The columns of JSON lines, from all of them. Times stay the texts that they are in JSON."""
    reading = arrow_json.ReadOptions(use_threads=False, block_size=len(text) + 1)
    found = arrow_json.read_json(io.BytesIO(text), reading).schema
    return pa.schema(
        field.with_type(pa.string()) if pa.types.is_temporal(field.type) else field
        for field in found
    )


def parse_lines(text: bytes, schema: pa.Schema) -> pa.RecordBatch:
    """JSON lines as one record batch."""
    options = arrow_json.ParseOptions(explicit_schema=schema)
    reading = arrow_json.ReadOptions(use_threads=False, block_size=len(text) + 1)
    table = arrow_json.read_json(io.BytesIO(text), reading, options)
    return table.combine_chunks().to_batches()[0]


def machine() -> Machine:
    """This machine, and how busy it is."""
    try:
        load: float | None = os.getloadavg()[0]
    except (AttributeError, OSError):
        load = None
    return Machine(
        system=f"{platform.system()} {platform.machine()}",
        processors=os.cpu_count() or 1,
        python=platform.python_version(),
        numpy=np.__version__,
        pyarrow=pa.__version__,
        load=load,
    )


def _alternated(ways: Sequence[Callable[[], None]], repeats: int, events: int) -> list[Timing]:
    """Time each way in turn, so that a busy minute of the machine falls on all of them."""
    spent: list[list[float]] = [[] for _ in ways]
    for _ in range(repeats):
        for way, times in zip(ways, spent, strict=True):
            gc.collect()
            times.append(_seconds(way) * 1e6 / events)
    return [Timing(statistics.median(times), min(times), max(times)) for times in spent]


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _plain(values: Any) -> list[Any]:
    """Python values of an Arrow or NumPy array."""
    return list(values.to_pylist() if hasattr(values, "to_pylist") else values.tolist())
