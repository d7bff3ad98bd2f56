"""Bodies that are sent early through routers: subscribers get what they would get without it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import subprocess
import sys
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.broker.networks import FAST, at, running
from tests.broker.processes import Process
from tests.repeats import rounds
from tests.waiting import PATIENCE, until

from tidings.broker import Address, Door, RootNode, RouterNode, TokenRights, load_config
from tidings.broker.admission.listen import UPSTREAM
from tidings.broker.config import RelationsTable
from tidings.broker.config.relations_table import StoreTable, WeightsTable
from tidings.cli.relations.relations_command import _show_node
from tidings.model import EnvironmentProblem, TidingsError
from tidings.network import Link, Refusal, inspect, watch
from tidings.network.agent import Agent, Subscription, connect
from tidings.network.link import MOST_WAITING
from tidings.relations import (
    Reading,
    RelationSettings,
    Term,
    decode_terms,
    encode_terms,
    load_relations,
)
from tidings.routing.clients.subscriber import Delivery
from tidings.routing.early import Early, encode_early
from tidings.routing.learning import EarlySettings
from tidings.routing.protocol import frames, messages as m

READING = Reading(place="city", time="day")
CITIES = "Chicago", "Evanston", "Paris"
DAYS = "2013-12-24", "2013-12-25"
ROOT = """
name = "root"
listen = "127.0.0.1:0"
journal = "journal.db"
[relations]
place = "city"
time = "day"
language = ""
"""
EDGE = """
name = "{name}"
listen = "127.0.0.1:0"
upstream = "127.0.0.1:{port}"
[relations]
limit = 1.5
store = {{most = 10}}
"""


@asynccontextmanager
async def network(folder: Path) -> AsyncIterator[tuple[RootNode, list[RouterNode]]]:
    """A root with relations, two routers below it, and a third below the first."""
    settings = RelationSettings(load_relations(language=None), READING)
    root = RootNode("root", folder / "journal.db", Door(), times=FAST, relations=settings)
    await root.start()
    chain: list[RouterNode] = []
    for name, above in (("a", None), ("b", None), ("c", 0)):
        port = root.port if above is None else chain[above].port
        node = RouterNode(name, Address("127.0.0.1", port), Door(), times=FAST)
        await node.start()
        chain.append(node)
    try:
        yield root, chain
    finally:
        for one in (*reversed(chain), root):
            await one.stop()


class Reader:
    """An agent's subscription, what it got, and what it should get."""

    def __init__(self, city: str, late: int) -> None:
        self.city, self.late = city, late
        self.got: list[bytes] = []
        self.expected: list[bytes] = []
        self.filter = f"city = '{city}' AND late >= {late}"

    def wants(self, event: dict[str, object]) -> bool:
        return event["city"] == self.city and int(str(event["late"])) >= self.late

    def is_done(self) -> bool:
        return len(self.got) >= len(self.expected)

    async def read(self, subscription: Subscription) -> None:
        async for one in subscription:
            if isinstance(one, Delivery):
                self.got.append(one.payload)


def test_exactly_what_matches(tmp_path: Path, seed: int) -> None:
    """Random traffic through several routers, while subscriptions come and go, links are cut and
    frames are lost because a queue is full: each subscriber gets what matches, once and in the
    order of the publisher."""
    chance = random.Random(seed)

    async def publish(agent: Agent, readers: list[Reader], number: int) -> None:
        burst = []
        for at_ in range(chance.choice((1, 3, 12))):
            event = {
                "city": chance.choice(CITIES), "day": chance.choice(DAYS),
                "late": chance.randrange(5),
            }  # fmt: skip
            payload = b"%d-%d " % (number, at_) + bytes(chance.choice((0, 2_000, 30_000)))
            for one in readers:
                if one.wants(event):
                    one.expected.append(payload)
            burst.append(agent.publish_soon(event, payload))
        await asyncio.gather(*burst)

    async def work() -> None:
        async with network(tmp_path) as (root, chain), AsyncExitStack() as stack:
            nodes: list[RootNode | RouterNode] = [root, *chain]
            assert chain[0].early is not None
            chain[0].early._bodies.most = 40_000  # it often forgets bodies that it has sent
            writer = await stack.enter_async_context(connect(at(chain[1]), times=FAST))
            agents = [
                await stack.enter_async_context(connect(at(node), times=FAST)) for node in nodes
            ]
            readers: dict[Reader, tuple[AsyncExitStack, asyncio.Task[None]]] = {}
            past: list[Reader] = []
            for number in rounds(40, 300):
                if len(readers) < 3 or (chance.random() < 0.2 and len(readers) < 8):
                    reader = Reader(chance.choice(CITIES), chance.randrange(4))
                    inner = await stack.enter_async_context(AsyncExitStack())
                    wanted = chance.choice(agents).subscribe(reader.filter)
                    found = await inner.enter_async_context(wanted)
                    readers[reader] = inner, asyncio.create_task(reader.read(found))
                elif chance.random() < 0.1:
                    reader = chance.choice([*readers])
                    await until(reader.is_done)
                    inner, task = readers.pop(reader)
                    task.cancel()
                    await inner.aclose()
                    past.append(reader)
                full = [
                    link for node in nodes for link in node.links.values() if chance.random() < 0.05
                ]
                for link in full:
                    link.most_waiting = -1  # nothing fits
                await publish(writer, [*readers], number)
                for link in full:
                    link.most_waiting = MOST_WAITING
                if chance.random() < 0.1:
                    node = chance.choice(nodes)
                    if node.links:
                        node.links[chance.choice([*node.links])].abort("the test cuts it")
            for reader in readers:
                await until(reader.is_done)
            for reader in (*readers, *past):
                assert reader.got == reader.expected
            early = [node.early.count() for node in nodes if node.early is not None]
            assert early[0][1] > 0
            assert sum(used for _, used in early[1:]) > 0
            assert all(used <= sent for sent, used in early)
            for _, task in readers.values():
                task.cancel()

    running(work)


def test_channel_without_relations_sends_nothing_early(tmp_path: Path) -> None:
    async def work() -> None:
        root = RootNode("root", tmp_path / "journal.db", Door(), times=FAST)
        await root.start()
        edge = RouterNode("a", Address("127.0.0.1", root.port), Door(), times=FAST)
        await edge.start()
        async with (
            connect(at(edge), times=FAST) as agent,
            agent.subscribe("city = 'Paris'") as found,
        ):
            for number in range(5):
                await agent.publish({"city": "Paris"}, bytes(5_000) + b"%d" % number)
            count = 0
            async for one in found:
                count += isinstance(one, Delivery)
                if count == 5:
                    break
        assert root.early is None
        assert edge.own.extra.learning is None
        assert all(link.early_out is None for link in (*root.links.values(), *edge.links.values()))
        await edge.stop()
        await root.stop()

    running(work)


class HostileRoot:
    """Sends bytes to a router that greets it."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.said: list[str] = []
        self.sent = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(frames.encode(m.Welcome("root", "router")))
        with contextlib.suppress(ConnectionError):
            for _ in range(60):
                writer.write(self.burst())
                await writer.drain()
            writer.write(self.nonsense())
            await writer.drain()
            data = await reader.read()
            starts, _ = frames.split(data)
            found = [frames.decode(data, start) for start in starts]
            self.said += [one.reason for one in found if isinstance(one, m.Goodbye)]
        writer.close()

    def burst(self) -> bytes:
        """Early bodies of all sizes, with contexts that make sense, and nobody who wants them."""
        found = []
        for _ in range(20):
            self.sent += 1
            size = self.chance.choice((0, 2_000, 60_000))
            context = encode_terms([Term("tag", f"tag{self.sent}")])
            found.append(encode_early(Early(3, 1.0, context, b"p", self.sent, bytes(size))))
        return b"".join(found)

    def nonsense(self) -> bytes:
        good = Early(3, 1.0, b"", b"p", 0, bytes(2_000))
        told = frames.encode(m.Notification(1, 1, (), bytes(99), "p", 1))
        return self.chance.choice((
            told[:4] + bytes((frames.REFERENCE,)) + told[5:],
            encode_early(good._replace(merit=float("nan"))),
            encode_early(good._replace(body=bytes(2 << 20))),
            b"\xff" * 100,
        ))  # fmt: skip


def test_flood_of_early_bodies(seed: int) -> None:
    """A root that sends early bodies without end fills no memory, and nonsense ends the link with
    one sentence; the router goes on."""

    async def work() -> None:
        hostile = HostileRoot(random.Random(seed))
        server = await asyncio.start_server(hostile.serve, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        router = RouterNode("r", Address("127.0.0.1", port), Door(), times=FAST)
        await router.start()
        tracemalloc.start()
        await until(lambda: len(hostile.said) >= 2)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 40 << 20  # of some 25 MB in each connection, at most 4 MiB are kept
        assert all(one.startswith("found ") for one in hostile.said)
        await router.stop()
        server.close()

    running(work)


def test_bodies_that_can_not_be_passed_on(tmp_path: Path) -> None:
    """An early body with a context that nobody can read, or at a router that can't load its
    relations, ends no link; and the router does not load them again for each body."""
    loads: list[int] = []

    def fail() -> EarlySettings:
        loads.append(1)
        raise EnvironmentProblem("there is no such file")

    async def work() -> None:
        async with network(tmp_path) as (root, chain):
            above = Address("127.0.0.1", root.port)
            bare = RouterNode("bare", above, Door(), times=FAST, relations=fail)
            await bare.start()
            await until(lambda: {"a", "bare"} <= root.links.keys())
            early = chain[0].early
            assert early is not None
            early.begin(chain[0].own)
            await until(lambda: chain[0].own.extra.learning is not None)
            for node, name in ((chain[0], "a"), (bare, "bare")):
                link = node.hops[UPSTREAM].link
                assert link is not None
                for stamp in range(4):
                    said = Early(3, 1.0, b"\xff\xff", b"p", stamp, bytes(2_000))
                    assert root.links[name].send_early(said)
                    await until(partial(has_kept, link, stamp + 1))
                    await asyncio.gather(*(one for one in [node.early._loading] if one))  # type: ignore[union-attr]
                assert not link.is_over
            await bare.stop()

    running(work)
    assert len(loads) == 1


def has_kept(link: Link, count: int) -> bool:
    """Whether so many early bodies have come over a link, unless it has ended."""
    return link.is_over or (link._early_in is not None and len(link._early_in) == count)


def test_rights_limit_what_is_sent_early(tmp_path: Path) -> None:
    """An early body may not match. So who may not subscribe to everything gets none, and may not
    ask what a node has learnt."""

    async def work() -> None:
        settings = RelationSettings(load_relations(language=None), READING)
        tokens = {
            "w": TokenRights("writer"),
            "some": TokenRights("some", within="late > 3"),
            "all": TokenRights("every"),
            "looks": TokenRights("looker"),
        }
        door = Door(tokens=tokens)
        root = RootNode("root", tmp_path / "journal.db", door, times=FAST, relations=settings)
        await root.start()
        got: dict[str, list[bytes]] = {"some": [], "every": []}

        async def read(name: str, found: Subscription) -> None:
            async for one in found:
                if isinstance(one, Delivery):
                    got[name].append(one.payload)

        def is_used() -> bool:
            link = root.links["every"]
            return link.early_out is not None and link.early_out.used > 0

        async with (
            connect(at(root), name="writer", token="w", times=FAST) as writer,
            connect(at(root), name="some", token="some", times=FAST) as some,
            connect(at(root), name="every", token="all", times=FAST) as every,
            some.subscribe("city = 'Chicago' AND late > 5") as few,
            every.subscribe("city = 'Chicago' AND late > 5") as many,
        ):
            readers = [asyncio.create_task(read(*one)) for one in (("some", few), ("every", many))]
            event = {"city": "Chicago", "day": "2013-12-25", "late": 9}
            count = 0
            while not is_used():
                await writer.publish(event, bytes(5_000))
                count += 1
                await asyncio.sleep(0)
            await until(lambda: len(got["some"]) == len(got["every"]) == count)
            assert root.links["some"].early_out is None
            assert (await inspect(at(root), name="looker", token="looks")).total == 2
            for reader in readers:
                reader.cancel()
        await until(lambda: not root.links)
        # Until the subscriptions have expired, or the test times out
        while (await inspect(at(root), name="looker", token="looks")).total:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        with pytest.raises(Refusal, match="'some' may not subscribe to everything here"):
            await inspect(at(root), name="some", token="some")
        await root.stop()

    running(work)


def test_table_of_a_router(tmp_path: Path) -> None:
    path = tmp_path / "edge.toml"
    path.write_text(EDGE.format(name="edge", port=7400) + "weights = {near_km = 10}\n")
    config = load_config(path)
    assert config.relations is not None
    serving = config.relations.load_serving(tmp_path)
    assert (serving.limit.merit, serving.store.most, serving.weights.near_km) == (1.5, 10, 10)
    table = RelationsTable(place="city", limit=2.0).for_router()
    assert table.load_serving(tmp_path).limit.merit == 2.0
    path.write_text(EDGE.format(name="edge", port=7400) + 'place = "city"\n')
    with pytest.raises(TidingsError, match="found the attribute 'city' in the file of a router"):
        load_config(path)


def run(*words: str) -> str:
    command = [sys.executable, "-m", "tidings", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_command_shows_the_settings_of_the_node(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Merits, weights, radii and names are those of the node, not those of the examples."""
    (tmp_path / "names").mkdir()
    rows = "name,inside,lat,lon\nHere,,0,0\nThere,Here,0,1\nFar,,0,3\n"
    (tmp_path / "names" / "places.csv").write_text(rows)
    table = RelationsTable(
        place="city", language="", folder="names",
        weights=WeightsTable(near_km=1000.0, descendant=0.5), store=StoreTable(radius_km=400.0),
    )  # fmt: skip

    async def work() -> m.Inspected:
        root = RootNode("root", tmp_path / "journal.db", Door(), relations=table.load(tmp_path))
        await root.start()
        async with (
            connect(at(root)) as agent,
            agent.subscribe("late > 3") as found,
        ):
            for city in ("Here", "There", "Far"):
                await agent.publish({"city": city, "late": 9}, b"")
                await found.next(PATIENCE)
            answer = await inspect(at(root))
            while answer.total < 3 or answer.pending:
                answer = await inspect(at(root))
            learning = root.own.extra.learning
            expected = [(term, round(merit, 6)) for term, _, merit, _ in learning.rank_terms()]
            told = [(decode_terms(one.context)[0], round(one.merit, 6)) for one in answer.topics]
            assert told == expected
        await root.stop()
        return answer

    answer = asyncio.run(asyncio.wait_for(work(), 2 * PATIENCE))

    def show(answer: m.Inspected, folder: str | None, *, json_: bool = True) -> Any:
        _show_node(answer, folder, None, None, json_)
        out = capsys.readouterr().out
        return json.loads(out) if json_ else out

    own = show(answer, str(tmp_path / "names"))
    assert own["same_names"]
    assert own["own_merits"]
    assert own["clusters"]["place"] == 1  # 50 km, the default, would give three
    merits = {one["value"]: one["merit"] for one in own["topics"]}
    # Here is above There; Far is 334 and 222 km away
    assert merits["Far"] == pytest.approx(1 + (1 - 0.3336) + (1 - 0.2224), abs=0.001)
    assert merits["Here"] == pytest.approx(1 + (1 - 0.1112) + (1 - 0.3336), abs=0.001)
    other = show(answer, None)
    assert not other["same_names"]
    assert other["topics"] == own["topics"]
    many = msgspec.structs.replace(answer, topics=())  # a node with more terms
    computed = show(many, str(tmp_path / "names"))
    assert not computed["own_merits"]
    assert {one["value"]: one["merit"] for one in computed["topics"]} == pytest.approx(merits)
    text = show(many, None, json_=False)
    assert "Warning: root has other files of names than the example files" in text
    assert "Merits were computed with the wrong files" in text
    assert "Warning" not in show(many, str(tmp_path / "names"), json_=False)
    older = msgspec.structs.replace(many, by=None)  # an older node says nothing about itself
    assert show(older, None)["same_names"]


def test_processes_and_the_command(tmp_path: Path) -> None:
    """Over real processes: a router further on learns, gets bodies early and passes them on, and
    the command shows what it has learnt."""
    root = Process(tmp_path, "root", ROOT)
    edge = Process(tmp_path, "edge", EDGE.format(name="edge", port=root.port))
    leaf = Process(tmp_path, "leaf", EDGE.format(name="leaf", port=edge.port))
    place = f"tidings://127.0.0.1:{leaf.port}"
    got: list[bytes] = []

    async def work() -> None:
        async with (
            connect(place) as agent,
            agent.subscribe("city = 'Chicago' AND late > 3") as found,
            watch(place) as reports,
        ):
            reading = asyncio.create_task(read(found))
            number = 0
            async for report in reports:  # one each second
                for _ in range(5):
                    number += 1
                    event = {"city": "Chicago", "day": "2013-12-25", "late": 3 + number}
                    await agent.publish(event, b"%d " % number + bytes(5_000))
                if report.nodes[0].early_used:
                    break
            await until(lambda: len(got) == number)
            assert [int(one.split()[0]) for one in got] == [*range(1, number + 1)]
            await asyncio.to_thread(check)  # what was learnt ends with the subscription
            reading.cancel()

    def check() -> None:
        for process, hop in ((root, "edge"), (edge, "leaf")):
            address = f"tidings://127.0.0.1:{process.port}"
            told = json.loads(run("relations", address, "--json"))
            assert told["nodes"] == 1
            assert told["clusters"] == {"place": 1, "time": 1, "tag": 0, "person": 0}
            assert {(one["value"], one["hop"]) for one in told["topics"]} == {
                ("Chicago", hop), ("2013-12-25", hop),
            }  # fmt: skip
            assert 0 < told["early_used"] <= told["early_bytes"]
        picture = tmp_path / "learnt.svg"
        done = run("relations", f"tidings://127.0.0.1:{edge.port}", "--svg", str(picture))
        assert "Chicago" in done
        assert "edge: 1 node; clusters: 1 of place, 1 of time" in done
        assert "sent early:" in done
        assert "<circle" in picture.read_text("utf-8")

    async def read(found: Subscription) -> None:
        async for one in found:
            if isinstance(one, Delivery):
                got.append(one.payload)  # noqa: PERF401 (others read it meanwhile)

    running(work)
    for process in (leaf, edge, root):
        assert process.stop() == 0
