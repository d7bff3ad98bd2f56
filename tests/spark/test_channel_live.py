"""The whole chain over real processes: rows in files, `tidings pipeline run`, a rendezvous point,
routers, agents. Each agent is told exactly what `Filter.matches` says, once."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow.parquet as pq
import pytest
from tests.broker.kills.tree import ROOT, TIMES
from tests.spark.chain import Chain, Event
from tests.spark.kills.history import run_tidings
from tests.waiting import eventually

from tidings.spark.channel.owner import read_waiting
from tidings.spark.pipeline.settings import load_settings
from tidings.spark.pipeline.stoppable_pipeline import StoppablePipeline
from tidings.studies.host.ports import is_listening

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.spark, pytest.mark.timeout(600), pytest.mark.usefixtures("forked"),
]  # fmt: skip

Make = Callable[..., Chain]
KINDS, PLACES = ("ale", "beer", "cider", "stout"), ("Bonn", "Cork", "Delft", "Graz", "Rome", None)
OVERLAPPING = [
    "price > 50",
    "NOT (price <= 50)",  # the same node
    "price > 50 AND kind = 'ale'",
    "price > 80 OR place = 'Rome'",
    "price BETWEEN 20 AND 60",
    "price >= 20 AND price < 61",
    "place IS NULL",
    "place LIKE 'D%' AND length(kind) > 4",
    "kind IN ('ale', 'stout') OR price % 7 = 3",
    "price % 7 = 3",
    "id >= 0",
    "price > 1000",  # never here
]


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[Make]:
    made: list[Chain] = []

    def make(**more: Any) -> Chain:
        made.append(Chain(tmp_path, **more))
        return made[-1]

    yield make
    for one in made:
        one.end()


def draw_rows(chance: random.Random, first: int, count: int) -> list[Event]:
    return [
        {
            "id": first + at,
            "price": chance.randrange(100),
            "kind": chance.choice(KINDS),
            "place": chance.choice(PLACES),
        }
        for at in range(count)
    ]


def outbox_rows(chain: Chain) -> list[dict[str, Any]]:
    return [row for one in chain.outbox.folders() for row in pq.read_table(one).to_pylist()]


@pytest.mark.parametrize(
    "channels", [("fx", "tea"), pytest.param(("",), marks=pytest.mark.slow)], ids=["named", "alone"]
)
def test_rows_reach_the_agents_that_want_them(
    chain: Make, seed: int, channels: tuple[str, ...]
) -> None:
    """Where the tree has two channels, the pipeline uses the first, and nothing of it gets into the
    second, although the numbers of its nodes are the same."""
    chance = random.Random(seed)
    one = chain(times=msgspec.structs.replace(TIMES, expire=4.0), channels=channels)
    one.start()
    others = [one.listen("e0", *OVERLAPPING[::4], channel=channel) for channel in channels[1:]]
    assert one.address.endswith(f"/{channels[0]}".rstrip("/"))
    filters = list(OVERLAPPING)
    chance.shuffle(filters)
    places = ["e0", "e1", "i0", ROOT, "e0"]
    agents = [one.listen(at, *filters[n::5]) for n, at in enumerate(places)]
    one.run_pipeline()
    rows = draw_rows(chance, 0, 400)
    one.put(rows[:150])
    one.put(rows[150:])
    one.await_rows()
    for interest in (interest for agent in agents for interest in agent.interests):
        interest.check(rows)

    # an interest is in the next batch
    late = agents[1].subscribe("price > 95 OR place = 'Bonn'")
    alone = agents[2].subscribe("price = -5")
    after = [*draw_rows(chance, 400, 100), {"id": 500, "price": -5, "kind": "ale", "place": "Cork"}]
    one.put(after)
    one.await_rows()
    late.check(after)
    alone.check(after)
    assert alone.ids == {500: 1}

    # and one that has ended is in none
    for interest in (alone, *agents[3].interests, *agents[4].interests):
        interest.end()
    gone = {alone.text, *(i.text for agent in agents[3:5] for i in agent.interests)} - {
        i.text for agent in agents[:3] for i in agent.interests
    }
    eventually(lambda: not gone & one.nodes().keys())
    last = [{**row, "id": row["id"] + 1000} for row in after]
    one.put(last)
    one.await_rows()
    for interest in (late, *(i for agent in agents[:3] for i in agent.interests)):
        interest.check([*(rows if interest is not late else []), *after, *last])
    living = one.nodes().values()
    for row in outbox_rows(one):
        if row["id"] >= 1000:
            assert set(row["nodes"]) <= set(living)
    assert alone.ids == {500: 1}

    # what is published in the other channel does not meet the rows
    there: list[Event] = [{"id": 9000, "price": 99, "kind": "ale", "place": "Rome"}]
    for other in others:
        for row in there:
            other.agent.publish(row, msgspec.json.encode(row))
    for interest in (interest for agent in others for interest in agent.interests):
        interest.check(there)
    for agent in agents[:3]:
        assert all(9000 not in interest.ids for interest in agent.interests)
    one.tree.check()


@pytest.mark.slow
def test_an_owner_that_is_down_is_waited_for(chain: Make) -> None:
    """Over TCP. Through the socket of a folder, test_folder_live.py says the same."""
    one = chain(above={"e0": ROOT})
    one.run_pipeline()  # before there is anybody
    errors = one.folder / "errors"
    eventually(lambda: one.is_alive() and "waiting for the channel tidings://" in one.errors())
    status = run_tidings(one.folder, "pipeline", "status", str(one.folder / "pipeline.toml"))
    assert (status.code, "waiting" in status.said) == (0, True), status.said
    one.start()
    agent = one.listen("e0", "price > 10")
    rows: list[Event] = [
        {"id": at, "price": at, "kind": "ale", "place": "Cork"} for at in range(20)
    ]
    one.put(rows)
    one.await_rows()
    assert errors.read_text().count("answers again") == 1

    one.tree.kill(ROOT)
    more: list[Event] = [{**one_row, "id": at + 100} for at, one_row in enumerate(rows)]
    one.put(more)
    said = "waiting for the channel"
    eventually(lambda: one.is_alive() and errors.read_text().count(said) == 2)
    assert len(one.outbox.log) == 1
    one.tree.start(ROOT)
    one.await_rows()
    agent.interests[0].check([*rows, *more])
    status = run_tidings(one.folder, "pipeline", "status", str(one.folder / "pipeline.toml"))
    assert "waiting" not in status.said
    assert one.pipeline is not None
    one.pipeline.process.terminate()
    eventually(lambda: one.pipeline is not None and not one.pipeline.alive())
    assert one.pipeline.process.returncode == 0
    assert "Traceback" not in one.errors()


def test_a_slow_root_holds_the_stream_up(chain: Make, spark: SparkSession) -> None:
    """Through the shared session: a rendezvous point that stands still, and is not dead. No batch
    begins before the root has the last one, and nothing is handed over twice."""
    one = chain(above={})
    one.start()
    agent = one.listen(ROOT, "price > 10", "price > 50")
    pipeline = StoppablePipeline(load_settings(one.folder / "pipeline.toml"), spark)
    rows: list[Event] = [
        {"id": at, "price": at * 7 % 100, "kind": "ale", "place": "Cork"} for at in range(120)
    ]
    one.put(rows[:20])
    query = pipeline.start()
    one.await_rows()
    root = one.tree.nodes[ROOT].process
    root.send_signal(signal.SIGSTOP)
    try:
        for first in range(20, 120, 20):
            one.put(rows[first : first + 20])
        eventually(lambda: read_waiting(one.outbox.channel_folder))
        begun = len(one.outbox.log)
        time.sleep(1)  # nothing happens
        assert query.isActive
        assert len(one.outbox.log) == begun < 3
        assert one.handed_rows() == 20
    finally:
        root.send_signal(signal.SIGCONT)
    one.await_rows()
    assert read_waiting(one.outbox.channel_folder) is None
    pipeline.end(query)
    pipeline.check(query)
    pipeline.close()
    for interest in agent.interests:
        interest.check(rows)
    one.tree.check()


TOKENS = """
[tokens]
"t-spark" = {name = "spark", may = ["preprocess"]}
"t-agent" = "desk"
"""


def test_the_right_to_preprocess_is_needed(chain: Make) -> None:
    one = chain(root=TOKENS, above={}, more='token_file = "token"\nname = "spark"')
    one.start()
    eventually(lambda: is_listening(int(one.address.rpartition(":")[2])))
    file, token = str(one.folder / "pipeline.toml"), one.folder / "token"
    token.touch(0o600)
    for text, name, sentence in (
        ("t-agent", "desk", "'desk' may not preprocess here"),
        ("t-none", "spark", "the token is not known here"),
    ):
        token.write_text(text)
        (one.folder / "pipeline.toml").write_text(
            Path(file).read_text().replace('name = "spark"', f'name = "{name}"')
        )
        ran = run_tidings(one.folder, "pipeline", "check", file)
        assert (ran.code, ran.fault()) == (2, "")
        assert sentence in ran.sentence, ran.said
        (one.folder / "pipeline.toml").write_text(
            Path(file).read_text().replace(f'name = "{name}"', 'name = "spark"')
        )
    token.write_text("t-spark")
    ran = run_tidings(one.folder, "pipeline", "check", file)
    assert (ran.code, "0 subscriptions" in ran.said) == (0, True), ran.said
