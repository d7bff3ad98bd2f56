"""Pipelines that follow channels of topics, types and an application's class, and go on when the
channel is revised. All processes are real, and each subscriber gets what it wants, once."""

from __future__ import annotations

import json
import random
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.broker.kills.tree import ROOT
from tests.filters.test_revision import lies_under
from tests.preprocessing import predicates_for_tests as predicates
from tests.preprocessing.installed import install
from tests.spark.chain import Chain, Event, Listener
from tests.spark.conftest import MakeChain
from tests.spark.kills.history import run_tidings
from tests.waiting import eventually

from tidings.network import Refusal
from tidings.routing.clients import Delivery, Interrupted, Resumed
from tidings.spark.outbox.outbox_reading import OutboxReader
from tidings.spark.pipeline.dead_letters import read_letters
from tidings.store import ChangeLog

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

PARENTS = {
    "sports": [], "events": [], "baseball": ["sports"], "football": ["sports"],
    "mlb": ["baseball"], "world cup": ["football", "events"],
}  # fmt: skip
REVISED = {
    "sports": [], "events": [], "baseball": ["sports"], "football": ["sports"],
    "world cup": ["football"], "chess": ["sports", "events"],
}  # fmt: skip
TOPICS = """
[preprocessor]
kind = "topics"
ontology = "topics.json"
"""
TYPES = """
[preprocessor]
kind = "types"
[preprocessor.types.event]
columns = {at = "timestamp"}
[preprocessor.types.quote]
extends = "event"
columns = {price = "double"}
[preprocessor.types.deal]
columns = {volume = "integer"}
[preprocessor.types.trade]
extends = ["quote", "deal"]
"""
PREDICATES = """
[preprocessor]
predicates = ["urgent", "odd", "fails", "hangs"]
predicate_millis = 1000
"""
APPLICATION = """
[preprocessor]
kind = "application"
class = "portfolios"
settings = {currency = "EUR"}
"""


class Told:
    """A subscription, and the ids of the rows that came."""

    def __init__(self, agent: Listener, text: str, dialect: str) -> None:
        self.text = text
        self.ids: Counter[int] = Counter()
        self.problems: list[str] = []
        self._told = agent.agent.subscribe(text, dialect)
        self.node = self._told.node
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for one in self._told:
            if isinstance(one, Delivery):
                attributes = one.attributes
                assert attributes is not None
                self.ids[attributes["id"]] += 1
            elif not isinstance(one, Interrupted | Resumed):
                self.problems.append(repr(one))

    def check(self, expected: list[int]) -> None:
        eventually(lambda: self.problems or len(self.ids) >= len(expected), 60)
        assert (self.text, self.problems, self.ids) == (self.text, [], Counter(expected))


def letters_of(one: Chain) -> list[tuple[int, str]]:
    found = read_letters(OutboxReader(one.folder / "out"))
    return sorted((json.loads(letter.raw)["id"], letter.reason) for letter in found)


def seen_rows(one: Chain) -> int:
    """The rows of all batches that the rendezvous point has, with those that were refused."""
    commits = (one.outbox.read_commit(batch) for batch in range(len(one.outbox.log)))
    refused = sum(commit.refused for commit in commits if commit is not None)
    return one.handed_rows() + refused


def test_topics_and_a_revision_while_the_pipeline_runs(chain: MakeChain, seed: int) -> None:
    chance = random.Random(seed)
    one = chain(root=TOPICS, columns={"id": "integer", "n": "integer"})
    topics = one.folder / "topics.json"
    topics.write_text(json.dumps(PARENTS))
    one.start()
    agent = one.listen("e0")
    interests = ["sports", "events", "baseball", "football", "football WHERE n > 4"]
    told = {text: Told(agent, text, "topics") for text in interests}
    expected: dict[str, list[int]] = {text: [] for text in interests}

    def draw(first: int, parents: dict[str, list[str]], names: list[str]) -> None:
        rows: list[Event] = []
        for at in range(first, first + 60):
            topic, n = chance.choice(names), chance.randrange(9)
            rows.append({"id": at, "topic": topic, "n": n})
            for text, due in expected.items():
                wanted, _, condition = text.partition(" WHERE ")
                if lies_under(parents, topic, wanted) and (n > 4 or not condition):
                    due.append(at)
        odd: list[Event] = [
            {"id": first + 80, "topic": "basebal", "n": 1},
            {"id": first + 81, "n": 1},
        ]
        one.put([*rows, *odd])

    pipeline = one.run_pipeline()
    draw(0, PARENTS, [*PARENTS])
    eventually(lambda: one.is_alive() and seen_rows(one) == one.rows, 300)
    for text, due in expected.items():
        told[text].check(due)

    topics.write_text(json.dumps(REVISED))
    revising = threading.Thread(
        target=run_tidings, args=(one.folder, "channel", "revise", str(one.folder / "root.toml"))
    )
    revising.start()  # it waits until the pipeline has heard of it, which is with its next batch
    eventually(lambda: "revised" in one.tree.nodes[ROOT].errors() or not revising.is_alive(), 60)
    # `mlb` is gone, and stands for baseball; the world cup is no event any more; chess is new
    after = {**REVISED, "mlb": ["baseball"]}
    for first in (1000, 2000):
        draw(first, after, [*after])
        eventually(lambda: one.is_alive() and seen_rows(one) == one.rows, 120)
    for text, due in expected.items():
        told[text].check(due)
    assert one.pipeline is pipeline  # it was never started again
    assert "was revised" in one.errors()
    letters = letters_of(one)
    assert [id_ for id_, _ in letters] == [80, 81, 1080, 1081, 2080, 2081]
    assert "there is no topic 'basebal'; did you mean 'baseball'?" in letters[0][1]
    assert letters[1][1] == "attribute 'topic': found no topic, expected the name of a topic"
    revising.join(60)
    one.tree.check()


def test_types(chain: MakeChain) -> None:
    """Rows add nodes for their types, and the next batch is tagged with them."""
    typed = TYPES.replace('"types"', '"types"\nnodes_for_types = 2', 1)
    one = chain(root=typed, columns={"id": "integer"})
    one.start()
    agent = one.listen("e0")
    told = [Told(agent, text, "types") for text in ("event", "quote WHERE price > 5", "deal")]
    one.run_pipeline()
    one.put([
        {"id": 1, "type": "event", "at": "2013-01-01T00:00:00Z"},
        {"id": 2, "type": "quote", "price": 9.5},
        {"id": 3, "type": "trade", "price": 1, "volume": 5},
        {"id": 4, "type": "deal", "volume": 5},
        {"id": 5, "type": "event", "price": 9.5},
        {"id": 6, "type": "deal", "price": None},
        {"id": 7, "type": "gift"},
    ])  # fmt: skip
    eventually(lambda: one.is_alive() and seen_rows(one) == one.rows, 300)
    for interest, due in zip(told, ([1, 2, 3], [2], [3, 4, 6]), strict=True):
        interest.check(due)
    state = ChangeLog(one.folder / "journal").state()
    added = {state.subscriptions[id_] for id_, who in state.owners.items() if who == "the channel"}
    assert {text for text, _ in added} == {"isa(type, 'quote')", "isa(type, 'trade')"}
    nodes = dict(added)
    one.put([
        {"id": 8, "type": "quote", "price": 1},
        {"id": 9, "type": "trade", "price": 9.5, "volume": 5},
    ])  # fmt: skip
    eventually(lambda: one.is_alive() and seen_rows(one) == one.rows, 300)
    for interest, due in zip(told, ([1, 2, 3, 8, 9], [2, 9], [3, 4, 6, 9]), strict=True):
        interest.check(due)
    assert Told(agent, "quote", "types").node == nodes["isa(type, 'quote')"]
    letters = letters_of(one)
    assert letters[0] == (5, "the type 'event' has no attribute 'price'; it has at")
    assert letters[1][1].startswith("attribute 'type': there is no type 'gift'")


def test_a_class_of_an_application(
    chain: MakeChain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = chain(root=APPLICATION, columns={})
    file = str(one.folder / "pipeline.toml")
    monkeypatch.setenv("PYTHONPATH", str(install(tmp_path / "site")))
    one.start()
    agent = one.listen("e0")
    told = [Told(agent, "SAP ALV", "application"), Told(agent, "amount > 5", "sql")]
    monkeypatch.delenv("PYTHONPATH")
    ran = run_tidings(one.folder, "pipeline", "check", file)
    assert ran.code == 2, ran.said
    assert "the preprocessor 'portfolios' is not installed here" in ran.sentence
    assert "on the driver and on every worker" in ran.sentence
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    one.run_pipeline()
    one.put([
        {"id": 1, "name": "sap", "price": 3.5},
        {"id": 2, "name": "ALV", "currency": "EUR", "price": 7},
        {"id": 3, "name": "bmw", "price": 6.5},
        {"id": 4, "name": "sap", "currency": "USD"},
        {"id": 5, "name": "sap", "price": "crash"},
        {"id": 6, "name": "sap", "price": "much"},
    ])  # fmt: skip
    eventually(lambda: one.is_alive() and seen_rows(one) == one.rows, 300)
    told[0].check([1, 2])
    told[1].check([2, 3])
    letters = letters_of(one)
    assert letters[0] == (4, "found USD, expected EUR")
    assert letters[1][1] == "the preprocessor 'portfolios' raised RuntimeError: a bug"
    assert letters[2][0] == 6


def test_predicates(chain: MakeChain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = chain(root=PREDICATES, columns={"id": "integer", "text": "string"})
    monkeypatch.setenv("PYTHONPATH", str(predicates.install(tmp_path / "site")))
    one.start()
    agent = one.listen("e0")
    filters = ["odd(id)", "id > 5 AND urgent(text, 2)", "id >= 0", "fails(id)"]
    told = {text: Told(agent, text, "sql") for text in filters}
    one.run_pipeline()
    rows: list[Event] = [{"id": at, "text": "!" * (at % 4)} for at in range(40)]
    one.put([*rows, {"id": 40, "text": None}])
    eventually(lambda: one.is_alive() and seen_rows(one) == one.rows, 300)
    is_urgent: Any = predicates.functions()["urgent"]
    told["odd(id)"].check([row["id"] for row in rows if row["id"] % 2])
    told["id > 5 AND urgent(text, 2)"].check(
        [row["id"] for row in rows if row["id"] > 5 and is_urgent(row["text"], 2)]
    )
    told["id >= 0"].check([*range(41)])
    told["fails(id)"].check([at for at in range(41) if decide_fails(at)])
    late = Told(agent, "id < 3 AND odd(id)", "sql")  # it comes with the tasks, not in a snapshot
    one.put([{"id": 2 - at, "text": "x"} for at in range(3)])
    eventually(lambda: one.is_alive() and seen_rows(one) == one.rows, 120)
    late.check([1])

    # one that hangs is switched off for everybody
    hanging = one.listen("e0").agent.subscribe("id > 50 AND hangs(text)")
    one.put([{"id": 51, "text": "fine"}, {"id": 52, "text": "short"}])
    assert [get_id(hanging.next(120)) for _ in range(2)] == [51, 52]
    every, odd = Told(agent, "id > 52", "sql"), Told(agent, "id > 52 AND odd(id)", "sql")
    one.put([{"id": 53, "text": "hang"}, {"id": 54, "text": "fine"}])
    eventually(lambda: one.is_alive() and seen_rows(one) == one.rows, 300)
    every.check([53, 54])
    odd.check([53])
    with pytest.raises(Refusal) as refused:
        list(iter(lambda: hanging.next(60), None))
    assert "the predicate 'hangs' is switched off: a call took longer than 1,000 ms" in str(
        refused.value
    )
    one.put([{"id": 55, "text": "hang"}])  # nobody calls it any more
    eventually(lambda: one.is_alive() and seen_rows(one) == one.rows, 60)
    every.check([53, 54, 55])
    one.tree.check()


def get_id(one: Any) -> Any:
    return one.attributes["id"]


def decide_fails(at: int) -> bool:
    call: Any = predicates.functions()["fails"]
    try:
        return call(at) is True
    except Exception:
        return False
