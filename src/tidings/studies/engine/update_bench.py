"""Measures the cost of changes: loading, single additions, matching during a merge, snapshots."""

from __future__ import annotations

import gc
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from tidings.studies.host.machine_info import MachineInfo, describe_machine
from tidings.studies.workloads.checking import WrongMatches
from tidings.studies.workloads.workloads import make_workload

SINGLE = 500  # how many filters are added one by one
SHARE = 20  # before each merge, 1/SHARE of the filters is added
EVENTS = 4096
LEAST_SEALED = 1024  # if at least this many filters are added at once, they become a segment


class CallLatencies(msgspec.Struct, frozen=True):
    """Microseconds of single calls."""

    p50: float
    p99: float
    longest: float
    calls: int


class UpdateRun(msgspec.Struct, frozen=True):
    """The measurements for one number of filters."""

    workload: str
    filters: int
    seed: int
    filters_per_second: float
    """The rate of loading in bulk, from text."""
    add: CallLatencies
    """Adding one filter from text, after the bulk load; the next match has to find it."""
    remove: CallLatencies
    quiet: CallLatencies
    """Matching one event while nothing else runs, in the round with the median p99."""
    merging: CallLatencies
    """Matching one event while a thread merges, in the round with the median p99."""
    merge_seconds: float
    save_seconds: float
    snapshot_bytes: int
    open_seconds: float
    """Opening the snapshot, with all checksums verified."""
    open_again_seconds: float

    @property
    def slowdown(self) -> float:
        """The p99 during a merge, divided by the p99 without one."""
        return self.merging.p99 / self.quiet.p99


class UpdateReport(msgspec.Struct, frozen=True):
    machine: MachineInfo
    runs: list[UpdateRun]


def bench_updates(
    names: Sequence[str],
    sizes: Sequence[int],
    *,
    rounds: int = 7,
    seed: int = 1,
    note: Callable[[str], None] = lambda _: None,
) -> UpdateReport:
    """Measure each workload with each number of filters. `note` is called with each step."""
    where = describe_machine()
    runs = []
    for name in names:
        for size in sizes:
            note(f"{name}, {size:,} filters")
            runs.append(_measure(name, size, rounds, seed, note))
    return UpdateReport(where, runs)


def _measure(
    name: str, size: int, rounds: int, seed: int, note: Callable[[str], None]
) -> UpdateRun:
    from tidings.matching import Matcher

    portion = max(LEAST_SEALED, size // SHARE)
    workload = make_workload(name, size + SINGLE + rounds * portion, EVENTS, seed)
    texts = list(workload.texts())
    events = workload.events.to_pylist()
    matcher = Matcher(background=False)
    gc.collect()
    start = time.perf_counter()
    matcher.add_many(texts[:size])
    load = time.perf_counter() - start
    for event in events[:200]:
        matcher.match(event)

    note(f"{name}, {size:,} filters: single changes")
    singles = texts[size : size + SINGLE]
    add, remove = _single_changes(matcher, singles, _examples(singles, workload.events, events))
    quiet, merging, seconds = [], [], []
    for number in range(rounds):
        note(f"{name}, {size:,} filters: merge {number + 1} of {rounds}")
        begin = size + SINGLE + number * portion
        matcher.add_many(texts[begin : begin + portion])
        for event in events[:200]:
            matcher.match(event)
        quiet.append(_latencies(_time_matches(matcher.match, events)))
        merge = threading.Thread(target=matcher.merge)
        start = time.perf_counter()
        merge.start()
        spent: list[int] = []
        while merge.is_alive():
            spent += _time_matches(matcher.match, events, merge.is_alive)
        seconds.append(time.perf_counter() - start)
        merging.append(_latencies(spent))
    note(f"{name}, {size:,} filters: snapshot")
    return UpdateRun(
        name, size, seed, size / load, add, remove, _middle(quiet), _middle(merging),
        statistics.median(seconds), *_snapshot(matcher, events),
    )  # fmt: skip


def _examples(
    texts: Sequence[tuple[Any, str]], table: Any, events: Sequence[Any]
) -> dict[Any, Any]:
    """For each id, an event that matches its filter, if there is one."""
    from tidings.matching import Matcher

    alone = Matcher(background=False)
    alone.add_many(texts)
    rows, ids = alone.match_pairs(table)
    return {id_: events[row] for row, id_ in zip(rows.tolist(), ids.tolist(), strict=True)}


def _single_changes(
    matcher: Any, texts: Sequence[tuple[Any, str]], examples: Mapping[Any, Any]
) -> tuple[CallLatencies, CallLatencies]:
    clock = time.perf_counter_ns
    added, removed = [], []
    for id_, text in texts:
        start = clock()
        matcher.add(id_, text)
        added.append(clock() - start)
        if id_ in examples and id_ not in matcher.match(examples[id_]):
            raise WrongMatches(f"filter {id_!r} was added, but the next match does not find it")
    for id_, _ in texts:
        start = clock()
        matcher.remove(id_)
        removed.append(clock() - start)
        if id_ in matcher:
            raise WrongMatches(f"filter {id_!r} was removed, but the matcher still has it")
    return _latencies(added), _latencies(removed)


def _time_matches(
    match: Callable[[Any], object],
    events: Sequence[Any],
    go_on: Callable[[], bool] = lambda: True,
) -> list[int]:
    """The nanoseconds of each match, until all matches are done or `go_on` returns False."""
    clock = time.perf_counter_ns
    spent = []
    for event in events:
        if not go_on():
            break
        start = clock()
        match(event)
        spent.append(clock() - start)
    return spent


def _latencies(spent: Sequence[int]) -> CallLatencies:
    micros: npt.NDArray[np.float64] = np.array(spent or [0]) / 1000
    half, tail = np.percentile(micros, [50, 99])
    return CallLatencies(float(half), float(tail), float(micros.max()), len(spent))


def _middle(rounds: Sequence[CallLatencies]) -> CallLatencies:
    return sorted(rounds, key=lambda one: one.p99)[len(rounds) // 2]


def _snapshot(matcher: Any, events: Sequence[Any]) -> tuple[float, int, float, float]:
    from tidings.matching import Matcher

    def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
        gc.collect()
        start = time.perf_counter()
        done = work()
        return time.perf_counter() - start, done

    with tempfile.TemporaryDirectory(prefix="tidings-bench-") as folder:
        path = Path(folder) / "snapshot"
        save, _ = seconds(lambda: matcher.save(path))
        size = sum(file.stat().st_size for file in path.iterdir())
        verified, opened = seconds(lambda: Matcher.open(path, background=False))
        for event in events[:50]:
            if set(opened.match(event)) != set(matcher.match(event)):
                raise WrongMatches(
                    "the reopened snapshot finds other filters than the matcher that was saved"
                )
        del opened
        again, _ = seconds(lambda: Matcher.open(path, background=False))
    return save, size, verified, again
