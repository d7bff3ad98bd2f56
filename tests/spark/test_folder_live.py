"""A pipeline that names the folder of a channel: it reaches the rendezvous point through the socket
in the folder, or owns the folder itself. All processes are real."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.broker.kills.tree import ROOT
from tests.cli.conftest import app
from tests.spark.chain import Chain, Event
from tests.spark.kills.history import run_tidings
from tests.waiting import eventually
from typer.testing import CliRunner

from tidings.channel import ChannelLink
from tidings.network import Refusal, TimedOut
from tidings.store import ChangeLog

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

Make = Callable[..., Chain]
TOKENS = """
[tokens]
"t-agent" = "desk"
"t-router" = {name = "e0", may = ["route"]}
"""
ALONE = """
name = "alone"
checkpoint = "checkpoint-alone"

[source]
kind = "files"
path = "in"

[columns]
id = "integer"
price = "integer"

[subscriptions]
channel = "journal"

[outbox]
path = "alone"

[trigger]
available_now = true
"""


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[Make]:
    made: list[Chain] = []

    def make(**more: Any) -> Chain:
        made.append(Chain(tmp_path, channel="journal", **more))
        return made[-1]

    yield make
    for one in made:
        one.end()


def draw_rows(first: int, count: int) -> list[Event]:
    return [{"id": first + at, "price": at, "kind": "ale", "place": "Cork"} for at in range(count)]


def test_rows_go_through_the_socket_in_the_folder(chain: Make) -> None:
    one = chain(above={"e0": ROOT})
    one.run_pipeline()  # nobody owns the folder, which does not even exist
    said = "waiting for the channel"
    eventually(lambda: one.is_alive() and said in one.errors())
    assert "no rendezvous point owns the folder; start one whose `journal`" in one.errors()
    assert "or leave out the sink `channel` to run without a network" in one.errors()
    file = str(one.folder / "pipeline.toml")
    status = run_tidings(one.folder, "pipeline", "status", file)
    assert (status.code, "waiting" in status.said) == (0, True), status.said
    one.start()
    agent = one.listen("e0", "price > 10", "id >= 0")
    rows = draw_rows(0, 20)
    one.put(rows)
    one.await_rows()
    assert (one.folder / "errors").read_text().count("answers again") == 1
    one.tree.kill(ROOT)
    more = draw_rows(100, 20)
    one.put(more)
    eventually(lambda: one.is_alive() and one.errors().count(said) == 2)
    assert len(one.outbox.log) == 1
    one.tree.start(ROOT)
    one.await_rows()
    for interest in agent.interests:
        interest.check([*rows, *more])

    # commands reach the rendezvous point in the same way
    ran = run_tidings(one.folder, "subscriptions", "add", file, "ana", "price = 3")
    assert ran.code == 0, ran.said
    named = ChangeLog(one.folder / "journal").subscriptions()["ana"]
    assert one.nodes()["price = 3"] == named[1]
    status = run_tidings(one.folder, "pipeline", "status", file)
    assert (status.code, "handed over" in status.said) == (0, True), status.said
    assert "waiting" not in status.said
    assert one.pipeline is not None
    one.pipeline.process.terminate()
    eventually(lambda: one.pipeline is not None and not one.pipeline.alive())
    assert one.pipeline.process.returncode == 0
    assert "Traceback" not in one.errors()
    one.tree.check()


def test_the_owner_of_the_folder_needs_no_token(chain: Make) -> None:
    one = chain(root=TOKENS, above={})
    one.start()
    folder = one.folder / "journal"
    eventually((folder / "socket").exists)
    with ChannelLink(one.address, timeout=5) as stranger, pytest.raises(Refusal):
        stranger.describe()
    with ChannelLink(folder, timeout=20) as link:
        described = link.describe()
        assert described.attributes is not None
        assert described.attributes["price"] == "integer"
        assert link.changes().life == described.life
    ran = run_tidings(one.folder, "pipeline", "check", str(one.folder / "pipeline.toml"))
    assert (ran.code, "0 subscriptions" in ran.said) == (0, True), ran.said


@pytest.mark.usefixtures("spark")
def test_without_a_network_the_pipeline_owns_the_folder(chain: Make) -> None:
    """The same store and the same numbers, before and after there is a rendezvous point. The
    pipeline runs in this process, because it needs the session of the run."""
    one = chain(above={})
    file = one.folder / "alone.toml"
    file.write_text(ALONE)

    def run(*words: str) -> str:
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, done.stderr
        return done.stdout

    for id_, text in (("low", "price > 3"), ("high", "price > 7")):
        run("subscriptions", "add", str(file), id_, text)
    one.put(draw_rows(0, 10))

    def tagged(batch: int) -> dict[int, list[int]]:
        run("pipeline", "run", str(file))
        shown = run("outbox", "show", str(file), "--json", "--most", "100")
        rows = [json.loads(line) for line in shown.splitlines() if line[:1] == "{"]
        return {row["price"]: row["nodes"] for row in rows if row["batch"] == batch}

    known = {
        id_: node for id_, (_, node) in ChangeLog(one.folder / "journal").subscriptions().items()
    }
    expected = {at: [known["high"] if at > 7 else known["low"]] for at in range(4, 10)}
    assert tagged(0) == expected
    one.start()
    eventually((one.folder / "journal" / "socket").exists)
    eventually(lambda: one.nodes().get("price > 7") == known["high"])
    one.put(draw_rows(50, 10))
    assert tagged(1) == expected  # the rendezvous point owns the folder, and the pipeline reads it


def test_a_pipeline_is_no_network(tmp_path: Path) -> None:
    log = ChangeLog(tmp_path)
    log.put("a", "n > 0")
    assert log.own()
    try:
        with ChannelLink(tmp_path, timeout=1) as link, pytest.raises(TimedOut) as problem:
            link.describe()
        assert "the pipeline that owns the folder" in str(problem.value)
        assert "is not in a network; expected a rendezvous point" in str(problem.value)
    finally:
        log.close()
