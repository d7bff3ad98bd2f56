"""Channels of topics, of types and of an application's class, as real processes that are killed:
everyone gets exactly what the ontology, the types or the class say, once."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
from pathlib import Path
from typing import Any

import pytest
from tests.broker.networks import connect_writers, payloads
from tests.broker.processes import Process
from tests.broker.test_preprocessors_live import Preprocessor, kill
from tests.filters.test_revision import lies_under
from tests.preprocessing.installed import install
from tests.waiting import PATIENCE

from tidings.network import Agent, Refusal, connect
from tidings.studies.host.ports import free_ports

PARENTS = {
    "sports": [], "events": [], "baseball": ["sports"], "football": ["sports"],
    "mlb": ["baseball"], "world cup": ["football", "events"],
}  # fmt: skip
TOPICS = """
name = "root"
listen = "127.0.0.1:{port}"
journal = "journal.db"
[preprocessor]
kind = "topics"
ontology = "topics.json"
synonyms = {{soccer = "football"}}
"""
TYPES = """
name = "root"
listen = "127.0.0.1:0"
journal = "journal.db"
[columns]
region = "string"
[preprocessor]
kind = "types"
[preprocessor.types.event]
columns = {at = "timestamp"}
[preprocessor.types.quote]
extends = "event"
columns = {price = "double"}
[preprocessor.types.deal]
[preprocessor.types.trade]
extends = ["quote", "deal"]
"""
APPLICATION = """
name = "root"
listen = "127.0.0.1:0"
journal = "journal.db"
[preprocessor]
kind = "application"
class = "portfolios"
settings = {currency = "EUR"}
"""
EDGE = """
name = "edge"
listen = "127.0.0.1:0"
upstream = "127.0.0.1:{port}"
"""


def run(work: Any) -> None:
    asyncio.run(asyncio.wait_for(work, 2 * PATIENCE))


async def refusal_of(agent: Agent, text: str, dialect: str) -> str:
    with pytest.raises(Refusal) as refused:
        await agent.subscribe(text, dialect, timeout=60).__aenter__()
    return str(refused.value)


def test_topics_in_processes_that_are_killed(tmp_path: Path, seed: int) -> None:
    (tmp_path / "topics.json").write_text(json.dumps(PARENTS))
    (port,) = free_ports(1)
    root = Process(tmp_path, "root", TOPICS.format(port=port))
    edge = Process(tmp_path, "edge", EDGE.format(port=port))
    tagging = Preprocessor(tmp_path, "tagging", port)
    chance = random.Random(seed)
    interests = [*PARENTS, "soccer", "football WHERE n > 4"]
    expected: dict[str, list[bytes]] = {one: [] for one in interests}
    above = {**PARENTS, "soccer": ["football"]}

    def is_due(interest: str, topic: str, n: int) -> bool:
        wanted, _, condition = interest.partition(" WHERE ")
        known = {"soccer": "football"}
        is_below = lies_under(above, known.get(topic, topic), known.get(wanted, wanted))
        return is_below and (n > 4 or not condition)

    async def work() -> None:
        nonlocal root
        place = f"tidings://127.0.0.1:{edge.port}"
        async with contextlib.AsyncExitStack() as stack:
            reader = await stack.enter_async_context(connect(place))
            writers = await connect_writers(stack, place)
            told = {}
            for one in interests:
                told[one] = await stack.enter_async_context(reader.subscribe(one, "topics"))
            assert told["soccer"].node != told["football"].node  # a revision may tell them apart
            for round_ in range(3):
                number = 0
                for writer in writers:
                    pairs = []
                    for _ in range(60):
                        number += 1
                        topic, n = chance.choice([*above]), chance.randrange(9)
                        pairs.append(({"topic": topic, "n": n}, b"%d %d" % (round_, number)))
                        for one, due in expected.items():
                            if is_due(one, topic, n):
                                due.append(pairs[-1][1])
                    for event, payload in pairs[:10]:
                        await writer.publish(event, payload)
                    await writer.publish_many(pairs[10:])
                if round_ == 0:
                    kill(root)
                    root = Process(tmp_path, "root", TOPICS.format(port=port))
            for one, due in expected.items():
                assert await payloads(told[one], len(due)) == due
            sentence = "there is no topic 'footbal'; did you mean 'football'? (at character 1)"
            assert await refusal_of(reader, "footbal", "topics") == sentence
            for writer in writers:
                with pytest.raises(Refusal, match="no topic 'sport'; did you mean 'sports'"):
                    await writer.publish({"topic": "sport"}, b"nobody")

    try:
        run(work())
    finally:
        tagging.stop()
        edge.stop()
        root.stop()


def test_types(tmp_path: Path) -> None:
    root = Process(tmp_path, "root", TYPES)

    async def work() -> None:
        place = f"tidings://127.0.0.1:{root.port}"
        async with (
            connect(place) as reader,
            connect(place, tag="local") as writer,
            reader.subscribe("event", "types") as events,
            reader.subscribe("quote WHERE price > 90", "types") as dear,
            reader.subscribe("deal WHERE region = 'EU'", "types") as deals,
        ):
            published: list[dict[str, Any]] = [
                {"type": "event", "at": "2026-01-01T00:00:00Z"},
                {"type": "quote", "price": 91},
                {"type": "trade", "price": 95, "region": "EU"},
                {"type": "deal", "region": "EU"},
                {"type": "quote", "price": 5},
            ]
            for number, event in enumerate(published):
                await writer.publish(event, b"%d" % number)
            assert await payloads(events, 4) == [b"0", b"1", b"2", b"4"]
            assert await payloads(dear, 2) == [b"1", b"2"]
            assert await payloads(deals, 2) == [b"2", b"3"]
            with pytest.raises(Refusal, match="the type 'deal' has no attribute 'price'"):
                await writer.publish({"type": "deal", "price": 5}, b"nobody")
            assert await refusal_of(reader, "deal WHERE price > 5", "types") == (
                "the type 'deal' has no attribute 'price'; it declares no attributes "
                "(at character 1)"
            )

    try:
        run(work())
    finally:
        root.stop()


def test_an_applications_class(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The class is installed for the processes, and not here: an agent can't tag by itself."""
    monkeypatch.setenv("PYTHONPATH", str(install(tmp_path / "site")))
    root = Process(tmp_path, "root", APPLICATION)
    tagging = Preprocessor(tmp_path, "tagging", root.port)

    async def work() -> None:
        place = f"tidings://127.0.0.1:{root.port}"
        async with (
            connect(place) as reader,
            connect(place, tag="preprocessor") as writer,
            connect(place) as other,
            reader.subscribe("SAP ALV", "application") as told,
            reader.subscribe("security = 'SAP' AND amount > 90", "sql") as dear,
        ):
            assert await writer._preprocessors.wait_for_any(PATIENCE)
            for number, price in enumerate([5, 95]):
                for at, one in enumerate((writer, other)):
                    await one.publish({"name": "sap", "price": price}, b"%d %d" % (number, at))
            await writer.publish({"name": "bmw", "price": 99}, b"not asked for")
            assert await payloads(told, 4) == [b"0 0", b"0 1", b"1 0", b"1 1"]
            assert await payloads(dear, 2) == [b"1 0", b"1 1"]
            assert writer._preprocessors.asked == 3
            with pytest.raises(Refusal, match="'portfolios' is not installed here"):
                await connect(place, tag="local").__aenter__()
            with pytest.raises(Refusal, match="found USD, expected EUR"):
                await writer.publish({"name": "sap", "currency": "USD"}, b"nobody")

    try:
        run(work())
    finally:
        tagging.stop()
        root.stop()
