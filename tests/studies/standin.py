"""A matcher for tests that needs nothing: every filter on every event."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from tidings import Filter, parse


class SlowMatcher:
    """What tidings.Matcher does, by the reference semantics."""

    def __init__(self) -> None:
        self.filters: list[tuple[Hashable, Filter]] = []
        self.merges = 0
        self.threads: set[int] = set()

    def add_many(self, pairs: Iterable[tuple[Hashable, str]]) -> int:
        self.filters += [(id_, parse(text)) for id_, text in pairs]
        return len(self.filters)

    def match(self, event: Any) -> list[Any]:
        row = json.loads(event) if isinstance(event, (str, bytes)) else event
        return [id_ for id_, filter_ in self.filters if filter_.matches(row)]

    def match_pairs(self, events: Any, *, threads: int = 1) -> tuple[Any, Any]:
        found = self.match_batch(events, threads=threads)
        lengths = [len(ids) for ids in found.to_pylist()]
        return np.repeat(np.arange(len(lengths)), lengths), found.flatten().to_numpy()

    def match_batch(self, events: Any, *, threads: int = 1) -> Any:
        self.threads.add(threads)
        rows = [self.match(row) for row in events.to_pylist()]
        return pa.array(rows, pa.list_(pa.int64()))

    def merge(self) -> None:
        self.merges += 1

    def stats(self) -> Mapping[str, Any]:
        return {"index_bytes": 40 * len(self.filters)}


class CountingMatcher(SlowMatcher):
    """One that can tell how many match without saying which."""

    def match_counts(self, events: Any, *, threads: int = 1) -> Any:
        return np.diff(self.match_batch(events, threads=threads).offsets.to_numpy())


class ForgetfulMatcher(SlowMatcher):
    """One that is wrong: single events miss their last match."""

    def match(self, event: Any) -> list[Any]:
        found = super().match(event)
        return found[:-1] if isinstance(event, (str, bytes)) else found


class MiscountingMatcher(CountingMatcher):
    """One that is wrong when it counts."""

    def match_counts(self, events: Any, *, threads: int = 1) -> Any:
        return super().match_counts(events, threads=threads) + 1


class RacingMatcher(SlowMatcher):
    """One that is wrong with many events on two threads."""

    def match_pairs(self, events: Any, *, threads: int = 1) -> tuple[Any, Any]:
        rows, ids = super().match_pairs(events, threads=threads)
        return (rows[1:], ids[1:]) if threads > 1 and events.num_rows > 10 else (rows, ids)
