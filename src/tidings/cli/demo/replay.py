"""`tidings demo`: the year's flights as a stream, through Spark and routers to people's agents.

days, file by file ──> pipeline on Spark ──> rendezvous point ──> routers ──> agents of people
                                 ^ their filters ──┘      some people join while it runs
"""

from __future__ import annotations

import tempfile
import threading
import time
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
from tidings.cli.demo.people import ABOVE, DemoPeople, Person, place_people
from tidings.files import place_file

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.tree import Tree

    from tidings.spark.outbox import Commit

SECONDS = 30.0  # the duration of the replay
SILENCE = 2.0  # seconds without a delivery: twice the time needed to detect a loss
LATECOMERS = {  # (month, day) on which they subscribe -> (name, filter)
    (3, 1): ("Zora, just hired", "dep_delay > 120"),
    (6, 1): ("Bram, on his way to the sea", "dest IN ('MIA', 'FLL', 'HNL') AND dep_delay > 45"),
    (9, 1): ("Iris, afraid of old planes", "tailnum LIKE 'N7%MQ'"),
    (11, 20): ("Noor, home for Thanksgiving", "month = 11 AND dest = 'ORD' AND dep_delay > 20"),
}
BACKTEST = "origin = 'JFK' AND dep_delay > 180"
MOST_TOLD = 8  # the number of people who are shown: those who were notified most often
_TYPES = {"int64": "integer", "double": "double", "string": "string"}
_FILE = """
name = "flights"
[source]
kind = "files"
path = "in"
files_per_trigger = 20
[subscriptions]
channel = "{channel}"
[outbox]
path = "out"
time = "time_hour"
grain_minutes = 10080
[trigger]
every_seconds = 0
[[sinks]]
kind = "channel"
"""


class YearReplay:
    """The replay of a year in half a minute, and its results so far."""

    def __init__(self, folder: Path, rows: int | None, addresses: Mapping[str, str]) -> None:
        self.folder = folder
        self.people = DemoPeople(addresses)
        self.days = list(_days(load_flights(), rows))
        self.flights = sum(len(lines) for _, _, lines in self.days)
        self.joined: dict[str, str] = {}  # name of a latecomer -> first day
        self.seen = self.matched = self.batches = 0
        self.spent = 0.0
        (folder / "in").mkdir()

    def subscribe(self) -> None:
        """Connect the people who subscribe from the start."""
        named = [(f"{one.subscriber} ({one.id})", one.text) for one in make_subscriptions()]
        self.people.join(place_people(named))

    def feed(self, stop: threading.Event) -> None:
        """Write the files of the days one by one; latecomers subscribe on their day."""
        pause = SECONDS / len(self.days)
        began = time.monotonic()
        for number, (month, day, lines) in enumerate(self.days):
            name = f"2013-{month:02d}-{day:02d}"
            if (month, day) in LATECOMERS:
                self.people.join(place_people([LATECOMERS[month, day]]))
                self.joined[LATECOMERS[month, day][0]] = name
            place_file(self.folder / "in" / f"{name}.json", b"\n".join(lines) + b"\n")
            if stop.wait(max(0.0, began + (number + 1) * pause - time.monotonic())):
                return

    def count_batch(self, done: Commit, seconds: float) -> None:
        """Count a batch that was handed over to the rendezvous point."""
        self.batches += 1
        self.seen += done.rows
        self.matched += done.matched
        self.spent += seconds

    def await_people(self) -> None:
        """Wait until no more deliveries arrive."""
        ended = time.monotonic()
        while time.monotonic() - max(ended, self.people.last) < SILENCE:
            time.sleep(0.05)

    # -- for the screen ------------------------------------------------------------------------

    def picture(self) -> RenderableType:
        """The current state."""
        from rich.console import Group

        told = self.people.counts()
        batches = count_of(self.batches, "micro-batch", "micro-batches")
        head = (
            f"{count_of(self.seen, 'flight')}   told {count_of(told.total(), 'time')}   {batches}"
        )
        by_name = {one.who: one for one in self.people.everyone}
        most = [(who, by_name[who].router, f"{count:,}")
                for who, count in told.most_common(MOST_TOLD) if who in by_name]  # fmt: skip
        new = [(who, by_name[who].router, f"from {day} on", f"{told[who]:,}")
               for who, day in self.joined.items()]  # fmt: skip
        parts: list[RenderableType] = [plain_text(head, "bold"), "", self._tree(), ""]
        parts += [table(["who", "through", "told#"], most), ""]
        if new:
            parts += [table(["subscribed later", "through", "when", "told#"], new), ""]
        latest = [(describe(one.row), _names([*one.told])) for one in [*self.people.latest]]
        parts += [table(["latest", "told to"], latest)]
        return Group(*parts)

    def _tree(self) -> Tree:
        """The routers, with the people at each."""
        from rich.tree import Tree

        top = Tree(
            plain_text(f"root   the rendezvous point: {count_of(self.matched, 'notification')}"),
            guide_style="dim",
        )
        drawn = {"root": top}
        for name, above in ABOVE.items():
            here, told = self.people.count_through(name)
            line = f"{name}   {count_of(here, 'agent')}, told {count_of(told, 'time')}"
            drawn[name] = drawn[above].add(plain_text(line))
        return top


def replay(rows: int | None, json: bool) -> None:
    """Replay the year; then show the results and a backtest."""
    load_pyarrow()
    from tidings.spark import local_session
    from tidings.spark.pipeline import Pipeline, load_settings
    from tidings.studies.chain import ChainNodes

    with tempfile.TemporaryDirectory(prefix="tidings-demo-") as name:
        folder = Path(name)
        nodes = ChainNodes(folder, _columns(), ABOVE)
        with live_picture(
            lambda: plain_text("starting routers, agents and Spark", "dim")
        ) as screen:
            try:
                nodes.start()
                year = YearReplay(folder, rows, nodes.addresses)
                year.subscribe()
                path = folder / "pipeline.toml"
                path.write_text(_FILE.format(channel=nodes.addresses["root"]))
                spark = local_session("tidings-demo")
                pipeline = Pipeline(load_settings(path), spark, year.count_batch)
                screen(year.picture)
                _run(year, pipeline)
            finally:
                nodes.end()
        if json:
            emit(_result(year, pipeline))
            return
        show(year.picture(), "")
        _show_end(year, pipeline)
        _show_backtest(spark, rows)


def _run(year: YearReplay, pipeline: Any) -> None:
    """Run the pipeline until all days are read and everybody has been notified."""
    stop = threading.Event()
    feeder = threading.Thread(target=year.feed, args=(stop,), daemon=True)
    query = pipeline.start()
    feeder.start()
    try:
        while feeder.is_alive() and query.isActive:
            time.sleep(0.1)
        query.processAllAvailable()
        year.await_people()
    finally:
        stop.set()
        query.stop()
        pipeline.close()
        feeder.join()
        year.people.close()


def _show_end(year: YearReplay, pipeline: Any) -> None:
    result = _result(year, pipeline)
    people = year.people
    show(
        facts(
            [
                ("agents", f"{result['agents']:,}, {len(year.joined)} of them new"),
                ("channel", f"{result['nodes']:,} different filters"),
                ("told", f"{result['told']:,} times, of {result['matched']:,} flights"),
                ("lost", f"{len(people.problems):,}; told twice: {people.repeated:,}"),
                ("outbox", result["outbox"]),
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


def _result(year: YearReplay, pipeline: Any) -> dict[str, Any]:
    people = year.people
    counters = pipeline.outbox.counters()
    return {
        "flights": year.seen,
        "matched": counters.get(0, 0),
        "told": people.told.total(),
        "lost": len(people.problems),
        "doubled": people.repeated,
        "batches": year.batches,
        "agents": len(people.everyone),
        "nodes": len(pipeline.subscriptions.view(pipeline.subscriptions.version).ids),
        "outbox": _check_outbox(pipeline.outbox.path),
        "routers": {
            name: {"agents": here, "told": told}
            for name in ABOVE
            for here, told in [people.count_through(name)]
        },
        "people": [
            {"who": one.who, "filter": one.filter, "router": one.router,
             "told": people.told[one.who]}
            for one in people.everyone
        ],
        "joined": {who: people.told[who] for who in year.joined},
    }  # fmt: skip


def _check_outbox(path: Path) -> str:
    """Check that the outbox has all rows, and that each node occurs as often as the commits say."""
    from tidings.spark.outbox import Outbox, OutboxCheck

    check = OutboxCheck(Outbox(path))
    for _ in check.batches():
        pass
    found = check.found
    told = f"{found.notifications:,} notifications at {found.nodes:,} nodes"
    return f"{told}: {found.problems[0]}" if found.problems else f"{told}, nothing missing"


def _names(told: list[Person]) -> str:
    """The first people who were notified, each with the name of their router."""
    named = [f"{one.who} at {one.router}" for one in told[:2]]
    more = f" and {len(told) - 2:,} more" if len(told) > 2 else ""
    return cut(", ".join(named), 60) + more


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
