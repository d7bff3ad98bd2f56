"""A chain of real processes: rows in files, a pipeline, a rendezvous point, routers; and agents in
this process, which write down what they are told."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from tests.broker.kills.tree import ROOT, TIMES, Tree
from tests.spark.kills.victims import Session
from tests.waiting import eventually

from tidings.channel import ChannelLink
from tidings.filters import Attributes, Filter, parse
from tidings.model import EnvironmentProblem
from tidings.network import BlockingAgent, BlockingSubscription, connect_blocking
from tidings.routing.clients import Delivery, Interrupted, Resumed
from tidings.routing.protocol import Times
from tidings.spark.channel.handing_over import read_handed
from tidings.spark.outbox.outbox import Outbox

COLUMNS = {"id": "integer", "price": "integer", "kind": "string", "place": "string"}
ATTRIBUTES = Attributes(COLUMNS)
ABOVE = {"i0": ROOT, "e0": "i0", "e1": ROOT}
FILE = """
name = "chain"

[source]
kind = "files"
path = "in"
format = "{format}"
files_per_trigger = 2

[subscriptions]
channel = "{address}"
rebuild_after = 20
{more}

[outbox]
path = "out"
{outbox}

[trigger]
every_seconds = 0.1

[[sinks]]
kind = "channel"

[spark]
master = "local[2,4]"

[spark.settings]
"spark.ui.enabled" = "false"
"spark.sql.streaming.minBatchesToRetain" = "100000"
"""
QUICK = {"JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}

Event = dict[str, Any]


class Closing(Protocol):
    """A program with an agent."""

    def close(self) -> None: ...


class Chain:
    """The processes. The files of everything are in `folder`."""

    def __init__(
        self,
        folder: Path,
        root: str = "",
        above: Mapping[str, str] = ABOVE,
        more: str = "",
        times: Times = TIMES,
        columns: Mapping[str, str] = COLUMNS,
        format: str = "json",  # noqa: A002
        outbox: str = "",
        channel: str = "",
        channels: Sequence[str] = ("",),
    ) -> None:
        """`root` is added to the file of the rendezvous point, `more` to [subscriptions], `outbox`
        to [outbox]; `channel` replaces the address. The pipeline uses the first of the `channels`,
        each of which has a rendezvous point."""
        self.folder = folder
        (folder / "in").mkdir()
        self.tree = Tree(folder, above, times=times, journal="journal", channels=channels)
        lines = "\n".join(f'{name} = "{kind}"' for name, kind in columns.items())
        with (folder / f"{ROOT}.toml").open("a") as file:
            file.write(f"\n[columns]\n{lines}\n{root}\n")
        (folder / f"{ROOT}.toml").chmod(0o600)
        self.address = self.tree.addresses[ROOT]
        (folder / "pipeline.toml").write_text(
            FILE.format(address=channel or self.address, more=more, format=format, outbox=outbox)
        )
        self.outbox = Outbox(folder / "out")
        self.files: dict[str, list[Event]] = {}
        self.agents: list[Listener] = []
        self.programs: list[Closing] = []
        self.times = times
        self.pipeline: Session | None = None

    def start(self) -> None:
        for name in self.tree.names:
            self.tree.start(name)

    def run_pipeline(self) -> Session:
        """`tidings pipeline run`, in a session of its own."""
        command = [sys.executable, "-m", "tidings", "pipeline", "run"]
        command.append(str(self.folder / "pipeline.toml"))
        self.pipeline = Session(command, self.folder / "errors", QUICK)
        return self.pipeline

    def end(self) -> None:
        for one in (*self.agents, *self.programs):
            one.close()
        if self.pipeline is not None:
            self.pipeline.end()
        self.tree.end()

    # -- rows ----------------------------------------------------------------------------------

    def put(self, rows: list[Event]) -> None:
        """A file of rows, moved into the source."""
        name = f"{len(self.files):06d}.json"
        self.files[name] = rows
        beside = self.folder / f".{name}"
        beside.write_text("".join(json.dumps(row) + "\n" for row in rows))
        beside.rename(self.folder / "in" / name)

    @property
    def rows(self) -> int:
        return sum(map(len, self.files.values()))

    def handed_rows(self) -> int:
        """How many rows were read by batches that the rendezvous point has."""
        handed = read_handed(self.outbox.channel_folder)
        if handed is None:
            return 0
        commits = (self.outbox.read_commit(batch) for batch in range(handed.batch + 1))
        return sum(one.rows for one in commits if one is not None)

    def await_rows(self) -> None:
        """Wait until the rendezvous point has all rows that match."""
        eventually(lambda: self.is_alive() and self.handed_rows() >= self.rows, 300)

    def is_alive(self) -> bool:
        assert self.pipeline is None or self.pipeline.alive(), self.errors()
        return True

    def errors(self) -> str:
        return (self.folder / "errors").read_text(errors="replace")[-3000:]

    # -- the channel ---------------------------------------------------------------------------

    def nodes(self) -> dict[str, int]:
        """The living nodes by their filters."""
        with ChannelLink(self.address) as link:
            return {one.filter: one.node for one in link.changes().changes if one.filter}

    def listen(self, at: str, *filters: str, channel: str | None = None) -> Listener:
        """An agent at a router, with subscriptions that are in force when this returns; `channel`
        is another one than the pipeline's."""
        address = self.tree.addresses[at]
        if channel is not None:
            address = f"{address.rpartition('/')[0]}/{channel}"
        one = Listener(address, filters, self.times)
        self.agents.append(one)
        return one


class Interest:
    """One subscription, and what came of it."""

    def __init__(self, text: str, told: BlockingSubscription) -> None:
        self.text = text
        self.filter: Filter = parse(text, attributes=ATTRIBUTES)
        self.told = told
        self.began = time.time_ns() // 1000  # in force
        self.ids: Counter[int] = Counter()
        self.payloads: dict[int, Event] = {}
        self.problems: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        for one in self.told:
            if isinstance(one, Delivery):
                row = json.loads(one.payload)
                self.ids[row["id"]] += 1
                self.payloads[row["id"]] = row
            elif not isinstance(one, Interrupted | Resumed):
                self.problems.append(repr(one))

    def wanted(self, rows: list[Event]) -> dict[int, Event]:
        return {row["id"]: row for row in rows if self.filter.matches(row)}

    def end(self) -> None:
        self.told.close()
        self._reader.join(30)

    def check(self, rows: list[Event], maybe: list[Event] = []) -> None:  # noqa: B006
        """Each of the rows that it matches came once, as it is; `maybe` may have come, too."""
        must, may = self.wanted(rows), self.wanted([*rows, *maybe])
        eventually(lambda: self.problems or not must.keys() - self.ids.keys())
        assert not self.problems, (self.text, self.problems)
        doubled = [id_ for id_, count in self.ids.items() if count > 1]
        strays = self.ids.keys() - may.keys()
        assert (doubled, strays) == ([], set()), self.text
        for id_, row in self.payloads.items():
            assert row == {name: one for name, one in may[id_].items() if one is not None}


def _connected(address: str, times: Times) -> BlockingAgent | None:
    """An agent, once its router listens."""
    try:
        return connect_blocking(address, times=times)
    except EnvironmentProblem:
        return None


class Listener:
    """An agent."""

    def __init__(self, address: str, filters: tuple[str, ...], times: Times) -> None:
        agent = eventually(lambda: _connected(address, times))
        assert agent is not None
        self.agent = agent
        self.interests = [self.subscribe(text) for text in filters]

    def subscribe(self, text: str) -> Interest:
        return Interest(text, self.agent.subscribe(text))

    def close(self) -> None:
        self.agent.close()
