"""Measures one revision of tidings; run by comparing.py with that revision on PYTHONPATH.

    python -P revision_worker.py FOLDER SECONDS

FOLDER contains filters.jsonl ([id, text]), events.arrow and events.jsonl. A measurement that takes
less than SECONDS is repeated, and the median is used. For each line on standard input, the worker
prints one line of JSON: {"values": {...}}, or {"failed": "why"}, after which it exits.

    import     imports tidings; returns the path of the package
    build      builds a matcher with all filters and warms it up; returns the seconds, the matches
    pairs      returns the microseconds per event of matching batches, with pairs as the result
    lists      returns the microseconds per event of matching batches, with id lists as the result
    dict json  returns percentiles of the microseconds of single events

This file may use only the interface that every revision of tidings has: Matcher, with add_many,
match, match_pairs and match_batch.
"""

from __future__ import annotations

import gc
import hashlib
import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

MOST_SINGLE = 2_000  # how many events are matched one by one
MOST_PASSES = 50

Values = dict[str, Any]


class Worker:
    """The filters and events of a folder, and the matcher of a revision."""

    def __init__(self, folder: Path, least: float) -> None:
        lines = (folder / "filters.jsonl").read_bytes().splitlines()
        self.filters = [(id_, text) for id_, text in map(json.loads, lines)]
        with pa.ipc.open_file((folder / "events.arrow").read_bytes()) as file:
            self.batches = [file.get_batch(at) for at in range(file.num_record_batches)]
        self.count = sum(batch.num_rows for batch in self.batches)
        self.rows = pa.Table.from_batches(self.batches).slice(0, MOST_SINGLE).to_pylist()
        self.lines = (folder / "events.jsonl").read_bytes().splitlines()[:MOST_SINGLE]
        self.least = least
        self.matcher: Any = None

    def answer(self, request: str) -> Values:
        if request == "import":
            return self.load()
        if request == "build":
            return self.build()
        if request == "pairs":
            return self.over_batches(self.matcher.match_pairs)
        if request == "lists":
            return self.over_batches(self.matcher.match_batch)
        return self.over_events(self.rows if request == "dict" else self.lines)

    def load(self) -> Values:
        import tidings

        if not hasattr(tidings, "Matcher"):
            raise ImportError("this revision of tidings has no Matcher")
        self.make = tidings.Matcher
        return {"file": tidings.__file__}

    def build(self) -> Values:
        self.matcher = None
        gc.collect()
        start = time.perf_counter()
        matcher = self.make()
        matcher.add_many(self.filters)
        seconds = time.perf_counter() - start
        self.matcher = matcher
        for batch in self.batches:
            matcher.match_pairs(batch)
        if hasattr(matcher, "merge"):
            matcher.merge()  # finish background work before measuring
        stats = matcher.stats() if hasattr(matcher, "stats") else {}
        return {
            "seconds": seconds,
            "index_bytes": stats.get("index_bytes"),
            "matches": self.matches(),
        }

    def matches(self) -> Values:
        """The number of matches with each method, and a digest of all matches."""
        digest = hashlib.blake2b(digest_size=16)
        pairs = lists = 0
        for batch in self.batches:
            events, ids = self.matcher.match_pairs(batch)
            numbers = np.asarray(events, np.int64) * len(self.filters) + np.asarray(ids, np.int64)
            digest.update(np.sort(numbers).tobytes())
            pairs += len(numbers)
            lists += len(self.matcher.match_batch(batch).flatten())
        return {
            "match_pairs": pairs,
            "match_batch": lists,
            "match of dicts": sum(len(self.matcher.match(event)) for event in self.rows),
            "match of JSON": sum(len(self.matcher.match(event)) for event in self.lines),
            "digest": digest.hexdigest(),
        }

    def over_batches(self, match: Callable[[Any], object]) -> Values:
        def one_pass() -> float:
            start = time.perf_counter()
            for batch in self.batches:
                match(batch)
            return time.perf_counter() - start

        return {"us": statistics.median(_repeat(one_pass, self.least)) * 1e6 / self.count}

    def over_events(self, events: Sequence[Any]) -> Values:
        spent: list[int] = []
        match = self.matcher.match
        clock = time.perf_counter_ns

        def one_pass() -> float:
            begun = clock()
            for event in events:
                start = clock()
                match(event)
                spent.append(clock() - start)
            return (clock() - begun) / 1e9

        _repeat(one_pass, self.least)
        half, tail = np.percentile(spent, [50, 99]) / 1000
        return {"p50": float(half), "p99": float(tail)}


def _repeat(one_pass: Callable[[], float], least: float) -> list[float]:
    """Repeat a pass until the total is at least `least` seconds; return the times."""
    gc.collect()
    times = [one_pass()]
    while sum(times) < least and len(times) < MOST_PASSES:
        times.append(one_pass())
    return times


def main() -> int:
    # Output that the revision itself prints must not be mistaken for an answer.
    out, sys.stdout = sys.stdout, sys.stderr
    worker: Worker | None = None
    for line in sys.stdin:
        try:
            worker = worker or Worker(Path(sys.argv[1]), float(sys.argv[2]))
            said: Values = {"values": worker.answer(line.strip())}
        except Exception as problem:
            said = {"failed": f"{type(problem).__name__}: {problem}"}
        out.write(json.dumps(said) + "\n")
        out.flush()
        if "failed" in said:
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
