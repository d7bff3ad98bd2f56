"""Rates and latencies of each stage of the chain, from the times that are on disk.

    made ──> batch begins ──> committed ──> on the disk of the rendezvous point ──> came to an agent
                 └─ tagging ──┘    └── hand-over ──┘
                                   └────────────── delivery ──────────────────────────┘

The rendezvous point forwards a part as soon as the part is on its disk, but a batch counts as
handed over only after its last part. So delivery, too, is measured from the commit, not from the
hand-over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from tidings.spark.outbox import Commit, Outbox, OutboxReader
from tidings.studies.chain.chain_rows import Row
from tidings.studies.chain.judging import DeliveredRows, Numbers, RowPlaces, find_times


class Seconds(msgspec.Struct, frozen=True):
    """Percentiles, in seconds."""

    p50: float
    p99: float
    most: float
    count: int


class Latencies(msgspec.Struct, frozen=True):
    """The latencies of rows that arrived at a steady rate; None if there were no such rows."""

    commit: Seconds | None  # from the source to the commit
    durable: Seconds | None  # from the source to the disk of the rendezvous point
    handover: Seconds | None  # of a batch, from the commit to the disk of the rendezvous point
    delivery: Seconds | None  # from the commit to the agent
    end_to_end: Seconds | None  # from the source to the agent


class StageRates(msgspec.Struct, frozen=True):
    """The rates, per second, of rows that all arrived at the same time; None if there were no such
    rows."""

    rows: int
    tagging: float | None  # rows, from the start of a batch to its commit
    handover: float | None  # notifications, from the commit to the disk of the rendezvous point
    durable: float | None  # notifications, from the source to the disk of the rendezvous point
    delivery: float | None  # deliveries to agents, from the first to the last


def place_rows(outbox: Outbox, commits: Sequence[Commit], count: int) -> RowPlaces:
    """Find the rows in the outbox."""
    batch, place, began = (np.full(count, -1, np.int64) for _ in range(3))
    reader, done = OutboxReader(outbox.path), 0
    for commit in commits:
        for file in reader.files(commit):
            for part in reader.batches(file, ["id"]):
                ids = part.column("id").to_numpy()
                batch[ids], began[ids] = commit.batch, commit.micros
                place[ids] = np.arange(done, done + len(ids))
                done += len(ids)
    return RowPlaces(batch, place, began)


def measure_latencies(
    rows: Sequence[Row],
    chosen: slice,
    placed: RowPlaces,
    commits: Sequence[Commit],
    handed: Mapping[int, int],
    told: DeliveredRows,
) -> Latencies:
    """The latencies of some of the rows."""
    made = find_times(rows)
    ended, durable = _by_batch(commits, handed)
    here = np.zeros(len(rows), bool)
    here[chosen] = True
    ids = np.flatnonzero(here & (placed.batch >= 0))
    batches = placed.batch[ids]
    kept = durable[batches] > 0
    mine = told[np.isin(told["id"], ids)]
    its = placed.batch[mine["id"]]
    whole = [one for one in np.unique(batches).tolist() if durable[one] > 0]
    return Latencies(
        commit=_seconds(ended[batches] - made[ids]),
        durable=_seconds((durable[batches] - made[ids])[kept]),
        handover=_seconds(durable[whole] - ended[whole]),
        delivery=_seconds(mine["came"] - ended[its]),
        end_to_end=_seconds(mine["came"] - made[mine["id"]]),
    )


def measure_rates(
    rows: Sequence[Row],
    chosen: slice,
    placed: RowPlaces,
    commits: Sequence[Commit],
    handed: Mapping[int, int],
    told: DeliveredRows,
) -> StageRates:
    """The rates of rows that were all given to the source at the same time."""
    ids = np.arange(len(rows))[chosen]
    ids = ids[placed.batch[ids] >= 0]
    if not len(ids):
        return StageRates(0, None, None, None, None)
    _, durable = _by_batch(commits, handed)
    its = [commits[at] for at in np.unique(placed.batch[ids]).tolist()]
    timed = [one for one in its if durable[one.batch] > 0]
    made = min(rows[at]["made"] for at in ids.tolist())
    last = max((int(durable[one.batch]) for one in its), default=0)
    came = told["came"][np.isin(told["id"], ids)]
    return StageRates(
        len(ids),
        tagging=_rate(sum(one.rows for one in its), sum(one.ended - one.micros for one in its)),
        handover=_rate(
            sum(one.matched for one in timed),
            sum(int(durable[one.batch]) - one.ended for one in timed),
        ),
        durable=_rate(len(ids), last - made),
        delivery=_rate(len(came), int(came.max() - came.min()) if len(came) else 0),
    )


def _by_batch(commits: Sequence[Commit], handed: Mapping[int, int]) -> tuple[Numbers, Numbers]:
    """The time at which each batch was committed, and the time at which it was handed over; 0 if
    that time is not known."""
    ended = np.array([one.ended for one in commits], np.int64)
    return ended, np.array([handed.get(one.batch, 0) for one in commits], np.int64)


def _rate(count: int, micros: int) -> float | None:
    return count * 1e6 / micros if micros > 0 else None


def _seconds(micros: npt.NDArray[np.int64]) -> Seconds | None:
    if not len(micros):
        return None
    p50, p99, most = (np.percentile(micros, [50, 99, 100]) / 1e6).tolist()
    return Seconds(p50, p99, most, len(micros))
