"""Matches rows with filters that call predicates: the calls are decided first.

    rows ──256 at a time──> calls that they need ──> helper processes, with deadlines ──> decisions
      └──────────────────────── matched one by one, with these decisions ────────────────────┘

The rule is that of the rendezvous point (docs/interests.md): a call that fails is repeated in a new
process, and a failure never counts as a result. A predicate that fails three times in a row ends
the task. The driver then asks the owner of the channel to switch the predicate off for everybody,
and runs the batch again, without the filters that call it.
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Coroutine, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from tidings.filters import parse
from tidings.matching.disk import read_table
from tidings.model import Event, FilterError, TidingsError
from tidings.preprocessing import Kind, PredicateCall
from tidings.preprocessing.predicates import CallIndex
from tidings.snapshots import View
from tidings.spark.outbox.batches.open_fields import match_rows
from tidings.spark.tagging.channel_kinds import ChannelKind, kind_of
from tidings.spark.tagging.worker import NODE_TEXTS, Pinned

TOGETHER = 256  # rows whose calls are decided together

Array = npt.NDArray[Any]
_FAILED = re.compile(r"the predicate '(\w+)' can't decide rows: (.+)")
_lock = threading.Lock()
_helpers: dict[bytes, WorkerHelpers] = {}
_calls: dict[tuple[str, int, bytes], CallIndex] = {}


class PredicateFailed(TidingsError):
    """A predicate failed, so a call could not be decided."""


class WorkerHelpers:
    """The processes of the predicates of a channel; they end with this process."""

    def __init__(self, kind: Kind) -> None:
        # imported late, because most workers never need it
        from tidings.broker.predicates import PredicateHelpers

        self._failed: dict[str, str] = {}
        self._helpers = PredicateHelpers(kind.definition, kind.decisions, self._note)

    async def _note(self, name: str, reason: str) -> None:
        self._failed[name] = reason

    def decide(self, calls: Sequence[PredicateCall]) -> None:
        """Decide calls; raises PredicateFailed if a predicate can't decide one."""
        self._failed.clear()
        _run(self._helpers.ask(calls))
        for name, reason in self._failed.items():
            raise PredicateFailed(f"the predicate '{name}' can't decide rows: {reason}")


def parse_failure(sentence: str) -> tuple[str, str] | None:
    """The predicate that failed in a worker, and the reason, parsed from the error message; None if
    the message is about something else."""
    found = _FAILED.search(sentence)
    return None if found is None else (found[1], found[2])


def find_calls(told: ChannelKind, pinned: Pinned) -> CallIndex:
    """The filters that call predicates, at a pinned version."""
    key = pinned.path, pinned.version, told.key
    with _lock:
        if key not in _calls:
            _calls.clear()
            _calls[key] = _index(kind_of(told), pinned)
        return _calls[key]


def _index(kind: Kind, pinned: Pinned) -> CallIndex:
    found = CallIndex(kind.decisions)
    if not kind.functions:
        return found
    table = read_table(Path(pinned.path) / NODE_TEXTS)
    likely = pc.match_substring_regex(table.column("filter"), "|".join(kind.functions))
    nodes, texts = (one.to_pylist() for one in table.filter(likely).columns)
    living: dict[Any, str] = dict(zip(nodes, texts, strict=True))
    for one in pinned.changes:
        living.pop(one.id, None)
        if one.filter is not None:
            living[one.id] = one.filter
    for node, text in living.items():
        try:
            form = parse(text, attributes=kind.attributes, functions=kind.functions).form
        except FilterError:
            continue  # the subscription is set aside
        found.add(node, form)
    return found


def match_decided(
    view: View, told: ChannelKind, calls: CallIndex, events: Sequence[Event]
) -> tuple[Array, Array]:
    """The result that `View.match_places` gives, for rows that need predicates."""
    helpers = _helpers_of(told)
    starts, places = [np.zeros(1, np.int64)], [np.zeros(0, np.int64)]
    for first in range(0, len(events), TOGETHER):
        some = events[first : first + TOGETHER]
        while missing := {one.key: one for event in some for one in calls.missing(event)}:
            helpers.decide([*missing.values()])
        ends, found = match_rows(view, some)
        starts.append(ends[1:] + starts[-1][-1])
        places.append(found)
    return np.concatenate(starts), np.concatenate(places)


def _helpers_of(told: ChannelKind) -> WorkerHelpers:
    with _lock:
        if told.key not in _helpers:
            _helpers[told.key] = WorkerHelpers(kind_of(told))
        return _helpers[told.key]


def _run(work: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine in the event loop of this process, and wait for it."""
    asyncio.run_coroutine_threadsafe(work, _event_loop()).result()


@cache
def _event_loop() -> asyncio.AbstractEventLoop:
    found = asyncio.new_event_loop()
    threading.Thread(target=found.run_forever, daemon=True, name="predicates").start()
    return found
