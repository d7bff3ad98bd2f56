"""What only a rendezvous point reports: its pipelines, named subscriptions and preprocessors.

Each list is bounded: if there are too many entries, the report keeps the pipelines that were heard
from most recently, and the subscriptions that lag most. The status of a rendezvous point is
computed only while somebody watches the rendezvous point.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import nlargest
from itertools import islice

from tidings.broker.reports import millis, shorten
from tidings.routing.protocol import messages as m
from tidings.routing.root import Rendezvous, read_key

# How many characters of a stream's name are shown. Anybody who knows the whole name can hand over
# batches under it.
SHOWN = 8
LOOKED_AT = 10_000  # the most named subscriptions that are looked at for a report


def list_preprocessors(machine: Rendezvous, now: float) -> tuple[m.PreprocessorStatus, ...]:
    return tuple(
        m.PreprocessorStatus(
            shorten(one.said.name), shorten(one.said.address), one.said.tagged,
            one.said.version, one.behind, min(one.said.uptime, m.MOST_MILLIS),
            millis(now - one.time),
        )
        for one in machine.following.list_preprocessors()
    )  # fmt: skip


def list_sources(machine: Rendezvous, now: float) -> tuple[m.SourceStatus, ...]:
    """The pipelines that handed over parts most recently."""
    known, seen = machine.sources.known, machine.sources.activity
    never = float("-inf")
    latest = nlargest(m.MOST_SOURCES, known, key=lambda one: seen[one].at if one in seen else never)
    return tuple(_status_of_source(machine, one, now) for one in latest)


def _status_of_source(machine: Rendezvous, source: str, now: float) -> m.SourceStatus:
    progress, seen = machine.sources.known[source], machine.sources.activity.get(source)
    lost = progress.batch < 0
    return m.SourceStatus(
        name="" if seen is None else shorten(seen.sender),
        stream=source[:SHOWN],
        batch=None if lost else progress.batch,
        parts=0 if lost else progress.part + progress.whole,
        whole=progress.whole and progress.last and not lost,
        taken=0 if seen is None else seen.taken,
        heard=None if seen is None else millis(now - seen.at),
    )


def list_names(machine: Rendezvous) -> tuple[m.NameStatus, ...]:
    """The named subscriptions that lag most."""
    latest = nlargest(m.MOST_NAMED, _find_lags(machine), key=lambda one: one[0])
    found = []
    for behind, key, serial in latest:
        owner, name = read_key(key)
        found.append(m.NameStatus(shorten(owner), shorten(name), serial, behind))
    return tuple(found)


def _find_lags(machine: Rendezvous) -> Iterator[tuple[int, str, int]]:
    totals = machine.counts.totals
    for key, one in islice(machine.naming.cursors.known.items(), LOOKED_AT):
        yield one.count_after(totals), key, one.serial
