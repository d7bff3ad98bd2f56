"""The drivers' side of the protocol, for those in Python. It needs nothing but Python.

A driver is called with FILTERS EVENTS WARM_UP LIMIT: two files of JSON lines and two numbers of
seconds. It loads both and builds its index. For every line on its standard input it then makes one
pass over the events, from their JSON text, on one thread, and prints one JSON line. A pass begins
with a warm-up, over all events or for WARM_UP seconds, and ends after LIMIT seconds even when
events are left.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any


class Task:
    """What the command line asks for."""

    def __init__(self, arguments: Sequence[str]) -> None:
        filters, events, warm_up, limit = arguments
        self.filters: list[dict[str, Any]] = [
            json.loads(line) for line in Path(filters).read_bytes().splitlines()
        ]
        self.events = Path(events).read_bytes().splitlines()
        self.warm_up = float(warm_up)
        self.limit = float(limit)


def serve(
    system: str, version: str, task: Task, build_seconds: float, match: Callable[[bytes], int]
) -> None:
    """Answer for a system that takes one event at a time; `match` gives the number of matches."""

    def measured() -> dict[str, Any]:
        clock = time.perf_counter_ns
        spent: list[int] = []
        matches = 0
        start = clock()
        end = start + int(task.limit * 1e9)
        for event in task.events:
            begun = clock()
            if begun > end:
                break
            matches += match(event)
            spent.append(clock() - begun)
        seconds = (clock() - start) / 1e9
        spent.sort()
        return {
            "events": len(spent),
            "matches": matches,
            "seconds": seconds,
            "p50_us": spent[len(spent) // 2] / 1000,
            "p99_us": spent[len(spent) * 99 // 100] / 1000,
        }

    def warm() -> None:
        end = time.perf_counter() + task.warm_up
        for event in task.events:
            if time.perf_counter() > end:
                break
            match(event)

    _answer(system, version, task, build_seconds, warm, measured)


def serve_batches(
    system: str,
    version: str,
    task: Task,
    build_seconds: float,
    batches: Sequence[tuple[int, Any]],
    match: Callable[[Any], int],
) -> None:
    """Answer for a system that takes many events at once: (how many, whatever `match` takes)."""

    def measured() -> dict[str, Any]:
        matches = events = 0
        start = time.perf_counter()
        for size, batch in batches:
            matches += match(batch)
            events += size
            if time.perf_counter() - start > task.limit:
                break
        seconds = time.perf_counter() - start
        return {"events": events, "matches": matches, "seconds": seconds}

    def warm() -> None:
        end = time.perf_counter() + task.warm_up
        for _, batch in batches:
            if time.perf_counter() > end:
                break
            match(batch)

    _answer(system, version, task, build_seconds, warm, measured)


def lines_of(events: Sequence[bytes], size: int) -> list[tuple[int, list[bytes]]]:
    """Events in batches, for `serve_batches`."""
    cut = (list(events[at : at + size]) for at in range(0, len(events), size))
    return [(len(batch), batch) for batch in cut]


def _answer(
    system: str,
    version: str,
    task: Task,
    build_seconds: float,
    warm: Callable[[], None],
    measured: Callable[[], dict[str, Any]],
) -> None:
    for _ in sys.stdin:
        warm()
        answer = {
            "system": system,
            "version": version,
            "filters": len(task.filters),
            "build_seconds": build_seconds,
            **measured(),
        }
        answer["us_per_event"] = answer["seconds"] * 1e6 / answer["events"]
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
