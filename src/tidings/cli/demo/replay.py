"""`tidings demo`: the year's flights as a stream on Spark; some people subscribe while it runs.

days, file by file ──> folder ──> pipeline ──> outbox ──> who was told, as it happens
   people who subscribe while it runs ──> log ──┘
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidings.cli.common.arrow import load_pyarrow
from tidings.cli.common.screen import (
    count_of,
    cut,
    emit,
    facts,
    live_picture,
    plain_text,
    show,
    table,
)
from tidings.cli.demo.demo_flights import describe, load_flights
from tidings.cli.demo.demo_subscriptions import make_subscriptions

if TYPE_CHECKING:
    from rich.console import RenderableType

    from tidings.spark.outbox import Commit
    from tidings.store import ChangeLog

DRAWN = 5_000  # random subscriptions, in addition to those of the people around the airport
SECONDS = 30.0  # the duration of the replay
LATECOMERS = {  # (month, day) on which they subscribe -> (name, filter)
    (3, 1): ("Zora, just hired", "dep_delay > 120"),
    (6, 1): ("Bram, on his way to the sea", "dest IN ('MIA', 'FLL', 'HNL') AND dep_delay > 45"),
    (9, 1): ("Iris, afraid of old planes", "tailnum LIKE 'N7%MQ'"),
    (11, 20): ("Noor, home for Thanksgiving", "month = 11 AND dest = 'ORD' AND dep_delay > 20"),
}
BACKTEST = "origin = 'JFK' AND dep_delay > 180"
_TYPES = {"int64": "integer", "double": "double", "string": "string"}
_FILE = """
name = "flights"
[source]
kind = "files"
path = "in"
files_per_trigger = 20
[columns]
{columns}
[subscriptions]
log = "subscriptions"
[outbox]
path = "out"
time = "time_hour"
grain_minutes = 10080
[trigger]
every_seconds = 0
"""


class Replay:
    """The replay of a year in half a minute, and its results so far."""

    def __init__(self, folder: Path, rows: int | None) -> None:
        self.folder = folder
        self.days = list(_days(load_flights(), rows))
        self.flights = sum(len(lines) for _, _, lines in self.days)
        self.told: Counter[str] = Counter()
        self.latest: list[tuple[str, str]] = []
        self.joined: dict[str, int] = {}  # latecomer -> the version of the subscription
        self.seen = self.batches = self.nodes = 0
        self.spent = 0.0
        self.day = ""
        (folder / "in").mkdir()

    def subscribe(self) -> ChangeLog:
        """Add the subscriptions that exist from the start."""
        from tidings.store import ChangeLog
        from tidings.studies import make_workload

        log = ChangeLog(self.folder / "subscriptions")
        people = {f"{one.subscriber} ({one.id})": one.text for one in make_subscriptions()}
        drawn = make_workload("flights", DRAWN, 1).texts()
        people |= {f"traveller {number}": text for number, text in drawn}
        log.put_many(people)
        return log

    def write_settings(self, columns: Mapping[str, str]) -> Path:
        path = self.folder / "pipeline.toml"
        lines = "\n".join(f'{name} = "{kind}"' for name, kind in columns.items())
        path.write_text(_FILE.format(columns=lines))
        return path

    def feed(self, log: ChangeLog, stop: threading.Event) -> None:
        """Write the files of the days one by one; latecomers subscribe on their day."""
        pause = SECONDS / len(self.days)
        began = time.monotonic()
        for number, (month, day, lines) in enumerate(self.days):
            if (month, day) in LATECOMERS:
                who, text = LATECOMERS[month, day]
                self.joined[who] = log.put(who, text)
            beside = self.folder / f".{number}"
            beside.write_bytes(b"\n".join(lines) + b"\n")
            beside.rename(self.folder / "in" / f"2013-{month:02d}-{day:02d}.json")
            if stop.wait(max(0.0, began + (number + 1) * pause - time.monotonic())):
                return

    def count_batch(self, done: Commit, seconds: float) -> None:
        """Count the matches of a batch."""
        from pyarrow import parquet

        from tidings.spark.outbox import Outbox

        self.batches += 1
        self.seen += done.rows
        self.spent += seconds
        self.nodes = max(self.nodes, len(done.counters))
        if not done.matched:
            return
        outbox = Outbox(self.folder / "out")
        rows = parquet.read_table(outbox.folder(done.batch, done.attempt))
        self.told.update(rows["subscriptions"].combine_chunks().flatten().to_pylist())
        last = rows.sort_by("time_hour").slice(max(0, rows.num_rows - 3)).to_pylist()
        self.latest = [(describe(row), _names(row["subscriptions"])) for row in last]
        self.day = str(last[-1]["time_hour"])[:10]

    def picture(self) -> RenderableType:
        """The current state, for the screen."""
        from rich.console import Group

        batches = count_of(self.batches, "micro-batch", "micro-batches")
        head = (
            f"{self.day or 'starting'}   {count_of(self.seen, 'flight')}   "
            f"told {count_of(self.told.total(), 'time')}   {batches}"
        )
        most = [(who, f"{count:,}") for who, count in self.told.most_common(8)]
        new = [(who, f"version {at:,}", f"{self.told[who]:,}") for who, at in self.joined.items()]
        parts: list[RenderableType] = [plain_text(head, "bold"), ""]
        parts += [table(["who", "told#"], most), ""]
        if new:
            parts += [table(["subscribed later", "from", "told#"], new), ""]
        parts += [table(["latest", "told to"], self.latest)]
        return Group(*parts)


def replay(rows: int | None, json: bool) -> None:
    """Replay the year; then show the results and a backtest."""
    load_pyarrow()
    from tidings.spark import local_session
    from tidings.spark.pipeline import Pipeline, load_settings

    with tempfile.TemporaryDirectory(prefix="tidings-demo-") as name:
        folder = Path(name)
        with live_picture(
            lambda: plain_text("starting Spark, compiling subscriptions", "dim")
        ) as screen:
            year = Replay(folder, rows)
            log = year.subscribe()
            path = year.write_settings(_columns())
            spark = local_session("tidings-demo")
            pipeline = Pipeline(load_settings(path), spark, year.count_batch)
            screen(year.picture)
            stop = threading.Event()
            feeder = threading.Thread(target=year.feed, args=(log, stop), daemon=True)
            query = pipeline.start()
            feeder.start()
            try:
                while feeder.is_alive() and query.isActive:
                    time.sleep(0.1)
                query.processAllAvailable()
            finally:
                stop.set()
                query.stop()
                pipeline.close()
        if json:
            emit(_result(year, pipeline))
            return
        show(year.picture(), "")
        _show_end(year, pipeline)
        _show_backtest(spark, rows)


def _show_end(year: Replay, pipeline: Any) -> None:
    result = _result(year, pipeline)
    show(
        facts(
            [
                ("subscriptions", f"{result['subscriptions']:,}, {len(year.joined)} of them new"),
                ("content graph", f"{result['nodes']:,} nodes, {result['edges']:,} edges"),
                ("told", f"{result['told']:,} times, of {result['matched']:,} flights"),
                ("numbers", result["numbers"]),
                (
                    "time",
                    f"{year.spent / max(1, year.batches):.2f} s per micro-batch, "
                    f"{year.seen / max(0.001, year.spent):,.0f} flights per second of work",
                ),
            ]
        )
    )


def _show_backtest(spark: Any, rows: int | None) -> None:
    """Show how often a filter would have fired."""
    from tidings.spark.backtests import backtest

    flights = spark.createDataFrame(load_flights().slice(0, rows))
    found = backtest(flights, BACKTEST, time="time_hour", every="week", samples=0)
    show("", plain_text(f"A backtest: how often would {BACKTEST} have fired, per week?", "bold"))
    show(*map(plain_text, found.plot_text(78).splitlines()))


def _result(year: Replay, pipeline: Any) -> dict[str, Any]:
    counters = pipeline.outbox.counters()
    snapshot = pipeline.subscriptions.view(pipeline.subscriptions.version)
    base = _base(pipeline)
    return {
        "flights": year.seen,
        "matched": counters.get(0, 0),
        "told": year.told.total(),
        "batches": year.batches,
        "subscriptions": len(snapshot.ids),
        "nodes": base["nodes"],
        "edges": base["edges"],
        "numbers": _check_numbers(pipeline.outbox, counters),
        "joined": {who: year.told[who] for who in year.joined},
    }


def _base(pipeline: Any) -> dict[str, int]:
    from tidings.snapshots import Snapshot

    pinned = pipeline.subscriptions.pin(pipeline.subscriptions.version)
    return Snapshot.open(pinned.path).stats()


def _check_numbers(outbox: Any, counters: Mapping[int, int]) -> str:
    """Check all numbers in the outbox: each node must count 1, 2, 3, ... up to its counter."""
    import numpy as np
    from pyarrow import parquet

    lists = [parquet.read_table(one, columns=["nodes", "numbers"]) for one in outbox.folders()]
    if not lists:
        return "none"
    nodes = np.concatenate([_flatten(one["nodes"]) for one in lists])
    numbers = np.concatenate([_flatten(one["numbers"]) for one in lists])
    order = np.lexsort((numbers, nodes))
    nodes, numbers = nodes[order], numbers[order]
    first = np.append(True, nodes[1:] != nodes[:-1])
    right = np.where(first, 1, np.append(0, numbers[:-1]) + 1)
    ends = numbers[np.append(np.flatnonzero(first)[1:] - 1, len(nodes) - 1)]
    known = [counters[node] for node in nodes[first].tolist()]
    good = (right == numbers).all() and (ends == np.array(known)).all()
    told = f"{len(numbers):,} of {first.sum():,} nodes"
    return f"{told}, no gap and no repeat" if good else f"{told}: THERE ARE GAPS OR REPEATS"


def _flatten(column: Any) -> Any:
    return column.combine_chunks().flatten().to_numpy()


def _names(who: list[str]) -> str:
    """The names of the first recipients; named people come before random travellers."""
    people = sorted(who, key=lambda name: name.startswith("traveller"))
    more = f" and {len(people) - 2:,} more" if len(people) > 2 else ""
    return cut(", ".join(people[:2]), 60) + more


def _columns() -> dict[str, str]:
    """The columns of flights, as a pipeline file declares them."""
    found = {}
    for field in load_flights().schema:
        found[field.name] = _TYPES.get(str(field.type), "timestamp")
    return found


def _days(flights: Any, rows: int | None) -> Iterator[tuple[int, int, list[bytes]]]:
    """Yield (month, day, JSON lines) in calendar order."""
    import pyarrow.compute as pc

    from tidings.studies.workloads import event_lines

    flights = flights.sort_by([("month", "ascending"), ("day", "ascending"), ("hour", "ascending")])
    flights = flights.slice(0, rows)
    at = flights.schema.get_field_index("time_hour")
    text = pc.strftime(flights["time_hour"], "%Y-%m-%dT%H:%M:%SZ")
    flights = flights.set_column(at, "time_hour", text)
    lines = event_lines(flights)
    months, days = (flights[name].to_numpy() for name in ("month", "day"))
    start = 0
    for end in range(1, len(lines) + 1):
        if end == len(lines) or (months[end], days[end]) != (months[start], days[start]):
            yield int(months[start]), int(days[start]), lines[start:end]
            start = end
