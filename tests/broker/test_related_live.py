"""A channel with relations as real processes that are killed: routers, a preprocessor, agents that
tag in every way. Everybody gets what the oracle says, once, marked as a match or as related."""

from __future__ import annotations

import asyncio
import contextlib
import random
import shutil
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.broker.networks import connect_writers
from tests.broker.processes import Process
from tests.broker.test_preprocessors_live import Preprocessor, kill
from tests.channel.related_world import Clause, Want, draw_event, draw_want
from tests.waiting import PATIENCE, until

from tidings.broker import Door, RootNode
from tidings.broker.config import ConfigError, RelationsTable, load_config
from tidings.broker.config.relations_table import DictionaryTable
from tidings.broker.trees import load_tree
from tidings.broker.trees.node_file import write_pairs
from tidings.network import Agent, Refusal, Subscription, connect, connect_blocking
from tidings.relations import EXAMPLES
from tidings.routing.clients import Delivery
from tidings.studies.host.ports import free_ports

ROOT = """
name = "root"
listen = "127.0.0.1:{port}"
journal = "journal.db"
[relations]
language = ""
place = "city"
time = "day"
tag = "tags"
person = "author"
"""
EDGE = """
name = "{name}"
listen = "127.0.0.1:0"
upstream = "127.0.0.1:{port}"
"""
Due = dict[bytes, float | None]


def run(work: Any) -> None:
    asyncio.run(asyncio.wait_for(work, 2 * PATIENCE))


async def judge(told: Subscription, due: Due, *, confirms: bool = False) -> Counter[str]:
    """Compare the next deliveries of a subscription with what is due, in any order."""
    found: dict[bytes, float | None] = {}
    kinds: Counter[str] = Counter()
    while len(found) < len(due):
        one = await told.next(60)
        assert one is not None, due.keys() - found.keys()
        if not isinstance(one, Delivery):
            continue
        assert one.payload not in found
        found[one.payload] = None if one.related is None else one.related.weight
        kinds["related" if one.related else "exact"] += 1
        if confirms:
            await told.confirm(one)
    assert found == pytest.approx(due)
    assert await told.next(0.05) is None
    due.clear()
    return kinds


async def refusal_of(agent: Agent, text: str, related: float) -> str:
    with pytest.raises(Refusal) as refused:
        await agent.subscribe(text, related=related, timeout=60).__aenter__()
    return str(refused.value)


@pytest.mark.usefixtures("forked")
def test_related_in_processes_that_are_killed(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    (port,) = free_ports(1)
    root = Process(tmp_path, "root", ROOT.format(port=port))
    upper = Process(tmp_path, "upper", EDGE.format(name="upper", port=port))
    edge = Process(tmp_path, "edge", EDGE.format(name="edge", port=upper.port))
    tagging = Preprocessor(tmp_path, "tagging", port)
    chicago = (Clause(city=("Chicago",), day=("Christmas",), late=60),)
    named = [Want(chicago, None), Want(chicago, 0.7), Want(chicago, 0.5)]
    drawn = [draw_want(chance)._replace(clauses=draw_want(chance).clauses[:1]) for _ in range(8)]
    drawn = [one for one in drawn if one.least is None or one.clauses[0].named()]
    wants = [*named, *drawn]
    dues: list[Due] = [{} for _ in wants]
    kept: Due = {}
    kinds: Counter[str] = Counter()

    async def work() -> None:
        nonlocal root
        places = [f"tidings://127.0.0.1:{one}" for one in (edge.port, upper.port)]
        async with contextlib.AsyncExitStack() as stack:
            readers = [await stack.enter_async_context(connect(one)) for one in places]
            writers = await connect_writers(stack, places[0])
            told = [
                await stack.enter_async_context(
                    readers[at % 2].subscribe(one.write(), related=one.least)
                )
                for at, one in enumerate(wants)
            ]
            nodes = [one.node for one in told[:3]]
            assert len({*nodes}) == 3
            number = 0
            for round_ in range(3):
                async with connect(places[0], name="keeper") as keeper:
                    durable = keeper.subscribe(named[1].write(), related=0.7, name="near")
                    await stack.enter_async_context(durable)
                    if round_:
                        kinds.update(await judge(durable, kept, confirms=True))
                for writer in writers:
                    pairs = []
                    for _ in range(25):
                        event, number = draw_event(chance), number + 1
                        if chance.random() < 0.3:  # often enough near Chicago at Christmas
                            event |= {"city": "Evanston", "day": "2013-12-26", "late": 90}
                        pairs.append((event, b"%d" % number))
                        for want, due in zip([*wants, named[1]], [*dues, kept], strict=True):
                            weight = want.gets(event)
                            if weight is None or weight > 0:
                                due[pairs[-1][1]] = weight
                    for event, payload in pairs[:5]:
                        await writer.publish(event, payload)
                    await writer.publish_many(pairs[5:])
                if round_ == 0:
                    kill(root)
                    root = Process(tmp_path, "root", ROOT.format(port=port))
                for one, due in zip(told, dues, strict=True):
                    kinds.update(await judge(one, due))
            assert [one.node for one in told[:3]] == nodes
            assert kinds["exact"]
            assert kinds["related"]
            sentence = "needs a test on a context (city, day, tags, author), and this filter has"
            assert sentence in await refusal_of(readers[0], "late > 60", 0.7)
            for bad in (0.0, 1.5):
                assert "above 0 and at most 1" in await refusal_of(
                    readers[0], "city = 'Paris'", bad
                )

    try:
        run(work())
    finally:
        tagging.stop()
        for one in (edge, upper, root):
            one.stop()


@pytest.mark.usefixtures("forked")
def test_a_blocking_agent_and_a_channel_without_relations(tmp_path: Path) -> None:
    root = Process(tmp_path, "root", ROOT.format(port=0))
    plain = Process(tmp_path, "plain", 'name = "plain"\nlisten = "127.0.0.1:0"\njournal = "p.db"\n')
    try:
        with (
            connect_blocking(f"tidings://127.0.0.1:{root.port}") as agent,
            agent.subscribe("city = 'Chicago'", related=0.7) as told,
        ):
            agent.publish({"city": "Evanston"}, b"near")
            agent.publish({"city": "Chicago"}, b"there")
            near, there = told.next(60), told.next(60)
            assert isinstance(near, Delivery)
            assert isinstance(there, Delivery)
            assert there.related is None
            assert there.matched == ("city = 'Chicago'",)
            assert near.matched == ()
            assert near.related is not None
            (reason,) = near.related.reasons
            assert (reason.context, reason.name, reason.kind) == ("place", "Evanston", "near")
        with connect_blocking(f"tidings://127.0.0.1:{plain.port}") as agent:
            with pytest.raises(Refusal, match="needs a channel with relations, but this channel"):
                agent.subscribe("city = 'Chicago'", related=0.7)
            with agent.subscribe("city = 'Chicago'") as told:  # the channel goes on
                agent.publish({"city": "Chicago"}, b"there")
                one = told.next(60)
                assert isinstance(one, Delivery)
                assert (one.payload, one.related) == (b"there", None)
    finally:
        root.stop()
        plain.stop()


def test_files_with_mistakes(tmp_path: Path) -> None:
    def problem(text: str) -> str:
        path = tmp_path / "root.toml"
        path.write_text(
            f'name = "r"\nlisten = "127.0.0.1:0"\njournal = "j.db"\n[relations]\n{text}'
        )
        with pytest.raises(ConfigError) as refused:
            load_config(path)
        return str(refused.value)

    assert "found no attribute of a context, expected at least one" in problem('language = ""')
    assert "relations.weights.near_km" in problem('place = "city"\nweights = {near_km = 0}')
    assert "found none of the files places.csv" in problem('place = "city"\nfolder = "nowhere"')
    assert "words.csv can't be read" in problem('place = "city"\ndictionary = {tag = "words.csv"}')
    assert "dictionary" in problem('place = "city"\ndictionary = {time = "words.csv"}')
    assert "relations.towns" in problem('towns = "city"')
    assert "found 1 attributes of coordinates" in problem('coordinates = ["lat"]')


def test_a_tree_hands_relations_to_its_rendezvous_points(tmp_path: Path) -> None:
    table = """place = "city"
language = ""
coordinates = ["lat", "lon"]
folder = "mine"
dictionary = {tag = "words.csv", place = "mine/places.csv"}
weights = {near_km = 50.0, people = {friend = 0.9}}
store = {least = 2}
limit = 0.5
"""
    shutil.copytree(EXAMPLES, tmp_path / "mine")
    Path(tmp_path, "words.csv").write_text("name,inside\ntulip,flower\n")
    path = tmp_path / "tree.toml"
    path.write_text(f"[relations]\n{table}[channels.tea.relations]\n{table}")
    tree = load_tree(path)
    for own in (tree, tree.channels["tea"]):
        assert own.relations is not None
        written = "\n".join(write_pairs(own.relations.list_given()))
        found = msgspec.convert(tomllib.loads(written), RelationsTable)
        assert found == own.relations
        settings = found.load(Path("/nowhere"))  # the folder is absolute by now
        assert settings.reading.coordinates == ("lat", "lon")
        assert (settings.weights.near_km, settings.weights.people) == (50.0, {"friend": 0.9})
        assert settings.asking is not None
        serving = own.relations.for_router().load_serving(Path("/nowhere"))
        assert serving.asking is not None
        assert (settings.limit.merit, settings.store.least) == (0.5, 2)
    path.write_text('[channels.tea.relations]\nlanguage = ""\n')
    with pytest.raises(ConfigError, match=r"channels\.tea\.relations: found no attribute of a"):
        load_tree(path)


def test_a_dictionary_is_asked_when_there_is_time(tmp_path: Path) -> None:
    """A name that the files lack is asked about after its first notification, or after the first
    filter; notifications with it are then related, and the node learns its new value."""
    path = tmp_path / "airports.csv"
    path.write_text("name,inside,lat,lon,also\nO'Hare,Chicago,41.979,-87.904,ORD\n")
    table = RelationsTable(place="city", language="", dictionary=DictionaryTable("airports.csv"))

    async def work() -> None:
        root = RootNode(
            "root", tmp_path / "journal.db", Door(), relations=table.load(tmp_path)
        )  # fmt: skip
        await root.start()
        async with (
            connect(f"tidings://127.0.0.1:{root.port}") as reader,
            connect(f"tidings://127.0.0.1:{root.port}") as writer,
            reader.subscribe("city = 'Chicago' AND late > 60", related=0.7) as above,
            reader.subscribe("late > 0") as told,
        ):
            settings = root._relations
            assert settings is not None
            await writer.publish({"city": "ORD", "late": 90}, b"first")
            await until(lambda: settings.semantic.places.find("ord"))
            assert settings.asking is not None
            assert not settings.asking.pending
            async with reader.subscribe("city = 'ORD' AND late > 60", related=0.7) as named:
                await writer.publish({"city": "ord", "late": 90}, b"second")
                await writer.publish({"city": "o'hare", "late": 90}, b"third")
                for one in (above, named):
                    found = await one.next(PATIENCE)
                    assert isinstance(found, Delivery)
                    assert found.payload == b"second"
                    assert found.related is not None
            for payload in (b"first", b"second", b"third"):
                exact = await told.next(PATIENCE)
                assert isinstance(exact, Delivery)
                assert (exact.payload, exact.related) == (payload, None)
        await root.stop()

    run(work())
