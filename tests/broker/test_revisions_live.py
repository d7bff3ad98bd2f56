"""A revised ontology in a running network, as real processes: nodes keep their numbers, removed
topics stand for others, older tags are corrected or refused, and every process that tags
acknowledges the revision; each subscriber gets exactly what the ontology at the time of the
publication says, once, and nobody starts over."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest
from hypothesis import given, settings, strategies as st
from tests.broker.networks import FAST, at, connect_writers, running
from tests.broker.processes import Process
from tests.broker.test_kinds_live import EDGE, TOPICS, TYPES, run
from tests.broker.test_preprocessors_live import Preprocessor, kill
from tests.filters.test_revision import a_graph, lies_under
from tests.preprocessing.installed import install
from tests.waiting import PATIENCE, until

from tidings.broker import Door, RootNode
from tidings.channel.interests import ArrayInterests, find_changed
from tidings.channel.interests.own_texts import OwnTexts
from tidings.filters.values import Ontology, revise
from tidings.model import TidingsError
from tidings.network import Agent, Outdated, Refusal, connect
from tidings.network.agent import Subscription
from tidings.preprocessing import Kind, KindDefinition
from tidings.routing.clients import Interrupted, Resumed
from tidings.routing.clients.subscriber import Delivery
from tidings.routing.protocol import Break
from tidings.routing.root import Placed
from tidings.studies.host.ports import free_ports

FIRST = {"sports": [], "baseball": ["sports"], "mlb": ["baseball"], "kbo": ["baseball"],
         "football": ["sports"], "chess": ["games"], "games": []}  # fmt: skip
# mlb and kbo are removed, football is renamed, games are removed with chess, go is new
SECOND = {"sports": [], "baseball": ["sports"], "soccer": ["sports"], "go": []}


def a_kind(parents: Mapping[str, Iterable[str]], **synonyms: str) -> KindDefinition:
    above = {name: tuple(up) for name, up in parents.items()}
    return KindDefinition("topics", "topic", above, synonyms)


def revise_by_command(folder: Path, port: int) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "tidings", "channel", "revise", str(folder / "root.toml"),
         "--router", f"tidings://127.0.0.1:{port}"],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


class Reader:
    """Reads a subscription: its payloads, its breaks, and the probes that have come."""

    def __init__(self, subscription: Subscription) -> None:
        self.payloads: list[bytes] = []
        self.probes: set[bytes] = set()
        self.breaks = 0
        self.refusal = ""
        self._subscription = subscription
        self.task = asyncio.create_task(self._read())

    async def _read(self) -> None:
        try:
            async for one in self._subscription:
                if isinstance(one, Delivery):
                    is_probe = one.payload.startswith(b"probe")
                    (self.probes.add if is_probe else self.payloads.append)(one.payload)
                elif isinstance(one, Break):
                    self.breaks += 1
                elif not isinstance(one, Interrupted | Resumed):
                    self.refusal = repr(one)
        except Refusal as problem:
            self.refusal = str(problem)


def test_a_revision_in_processes_that_are_killed(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    (port,) = free_ports(1)
    file = TOPICS.replace('synonyms = {{soccer = "football"}}\n', "").format(port=port)
    (tmp_path / "topics.json").write_text(json.dumps(FIRST))
    root = Process(tmp_path, "root", file)
    edge = Process(tmp_path, "edge", EDGE.format(port=port))
    tagging = Preprocessor(tmp_path, "tagging", port)
    ontology = Ontology(FIRST)
    expected: dict[str, list[bytes]] = {name: [] for name in FIRST}
    number = 0

    async def publish(writers: Iterable[Agent]) -> None:
        nonlocal number
        names = [one for one in {*FIRST, *SECOND} if one in ontology]
        for writer in writers:
            pairs = []
            for _ in range(40):
                number += 1
                topic = chance.choice(sorted(names))
                pairs.append(({"topic": topic}, b"%d" % number))
                for interest, due in expected.items():
                    if ontology.isa(topic, interest):
                        due.append(pairs[-1][1])
            for event, payload in pairs[:10]:
                await writer.publish(event, payload)
            await writer.publish_many(pairs[10:])

    async def probe(writer: Agent, read: Mapping[str, Reader], what: bytes) -> None:
        """Wait until all subscriptions are in place again."""
        due = [name for name in read if name in ontology]
        while not all(what in read[name].probes for name in due):
            for name in due:
                await writer.publish({"topic": name}, what)
            await asyncio.sleep(0.3)

    async def work() -> None:
        nonlocal root, ontology
        place = f"tidings://127.0.0.1:{edge.port}"
        async with contextlib.AsyncExitStack() as stack:
            agent = await stack.enter_async_context(connect(place))
            writers = await connect_writers(stack, place)
            told = {
                name: await stack.enter_async_context(agent.subscribe(name, "topics"))
                for name in FIRST
            }
            read = {name: Reader(one) for name, one in told.items()}
            await publish(writers)
            (tmp_path / "topics.json").write_text(json.dumps(SECOND))
            (tmp_path / "root.toml").write_text(f'{file}synonyms = {{football = "soccer"}}\n')
            ontology = revise(ontology, Ontology(SECOND, {"football": "soccer"})).ontology
            said = await asyncio.to_thread(revise_by_command, tmp_path, port)
            assert "accepted as version " in said
            assert "acknowledged by 2 of 2 processes that tag" in said
            await publish(writers)  # at once: nobody has subscribed to the new nodes yet
            assert "'mlb' was removed, and now means 'baseball'" in root.log()
            kill(root)  # the revised ontology is in the journal
            root = Process(tmp_path, "root", (tmp_path / "root.toml").read_text())
            await publish(writers)
            await probe(writers[0], read, b"probe 2")
            for name, one in read.items():
                due = expected[name]
                if name in ontology:
                    await until(lambda one=one, due=due: len(one.payloads) >= len(due))  # type: ignore[misc]
                    assert one.payloads == due, name
                    assert not one.breaks, name
                else:
                    assert one.refusal.startswith(f"there is no topic '{name}'"), one.refusal
                one.task.cancel()
            nodes = {name: await agent.node_of(name, "topics") for name in ("sports", "football")}
            assert nodes == {name: told[name].node for name in nodes}

    try:
        run(work())
    finally:
        tagging.stop()
        edge.stop()
        root.stop()


NEW_TYPES = """
[preprocessor.types.tick]
extends = "event"
columns = {size = "integer"}
[preprocessor.types.swap]
extends = ["trade", "tick"]
columns = {rate = "double"}
"""


def test_new_types_get_their_nodes(tmp_path: Path, seed: int) -> None:
    """A revision declares types above and below types that have subscribers. Nobody starts over:
    the nodes of before keep their numbers and their counts, and get notifications of the new
    types. Each new type has a node of its own when somebody subscribes to it."""
    chance = random.Random(seed)
    (port,) = free_ports(1)
    file = TYPES.replace("127.0.0.1:0", f"127.0.0.1:{port}")
    root = Process(tmp_path, "root", file)
    tagging = Preprocessor(tmp_path, "tagging", port)
    above = {"event": ["event"], "quote": ["quote", "event"], "deal": ["deal"],
             "trade": ["trade", "quote", "event", "deal"]}  # fmt: skip
    expected: dict[str, list[bytes]] = {name: [] for name in above}
    number = 0

    async def publish(writers: Iterable[Agent]) -> None:
        nonlocal number
        for writer in writers:
            for _ in range(20):
                number += 1
                type_, payload = chance.choice(sorted(above)), b"%d" % number
                await writer.publish({"type": type_}, payload)
                for name in above[type_]:
                    expected[name].append(payload)

    async def check(read: Mapping[str, Reader]) -> None:
        for name, one in read.items():
            await until(lambda one=one, name=name: len(one.payloads) >= len(expected[name]))  # type: ignore[misc]
            assert one.payloads == expected[name], name
            assert (one.breaks, one.refusal) == (0, ""), name

    async def work() -> None:
        nonlocal root
        place = f"tidings://127.0.0.1:{port}"
        async with contextlib.AsyncExitStack() as stack:
            agent = await stack.enter_async_context(connect(place))
            writers = await connect_writers(stack, place)

            told: dict[str, Subscription] = {}

            async def read(names: Iterable[str]) -> dict[str, Reader]:
                for name in names:
                    one = agent.subscribe(name, "types", timeout=60)
                    told[name] = await stack.enter_async_context(one)
                return {name: Reader(told[name]) for name in names}

            def nodes() -> dict[str, int]:
                return {name: told[name].node for name in kept}

            kept = set(above)
            readers = await read(kept)
            before = nodes()
            assert len({0, *before.values()}) == 5
            with pytest.raises(Refusal, match="there is no type 'swap'"):
                await writers[0].publish({"type": "swap"}, b"nobody")
            await publish(writers)
            await check(readers)
            (tmp_path / "root.toml").write_text(file + NEW_TYPES)
            assert "acknowledged by 2 of 2" in await asyncio.to_thread(
                revise_by_command, tmp_path, port
            )
            above["tick"] = ["tick", "event"]
            above["swap"] = ["swap", "tick", *above["trade"]]
            expected.update({"tick": [], "swap": []})
            for names in above.values():  # nobody asks for the new types yet
                names[:] = [name for name in names if name in kept]
            await publish(writers)
            await check(readers)
            assert nodes() == before
            above["tick"].append("tick")
            above["swap"] += ["swap", "tick"]
            readers |= await read(["tick", "swap"])
            assert told["tick"].node not in before.values()
            assert told["swap"].node not in {told["tick"].node, *before.values()}
            await publish(writers)
            await check(readers)
            kill(root)
            root = Process(tmp_path, "root", file + NEW_TYPES)
            await publish(writers)
            await check(readers)
            assert nodes() == before
            for one in readers.values():
                one.task.cancel()

    try:
        run(work())
    finally:
        tagging.stop()
        root.stop()


@settings(max_examples=200)
@given(st.integers(0, 2**32))
def test_which_interests_have_changed(seed: int) -> None:
    """Against the definition, on random graphs with some nodes in common."""
    chance = random.Random(seed)
    before, after = (a_graph(chance, "".join(chance.sample("abcdefg", 6))) for _ in range(2))

    def placed(graph: dict[str, list[str]]) -> list[Placed]:
        return [Placed(ord(n), tuple(map(ord, up)), ()) for n, up in graph.items()]

    def below(graph: dict[str, list[str]], name: str) -> set[str]:
        return {one for one in graph if one != name and lies_under(graph, one, name)}

    expected = {
        ord(name)
        for name in after
        if name not in before or below(before, name) != below(after, name)
    }
    assert find_changed(placed(before), placed(after)) == expected


def test_tags_of_before_are_corrected_or_refused(tmp_path: Path) -> None:
    async def work() -> None:
        root = RootNode("root", tmp_path / "j", Door(), kind=a_kind(FIRST), times=FAST)
        await root.start()
        async with (
            connect(at(root), tag="local", times=FAST) as tagger,
            connect(at(root), times=FAST) as reader,
            reader.subscribe("mlb", "topics") as mlb,
            reader.subscribe("kbo", "topics") as kbo,
        ):
            history = root.machine.history
            await until(lambda: tagger.view.version >= history.version)
            header = await tagger.header({"topic": "kbo"})
            tag = tagger.view.tag(b'{"topic": "kbo"}')
            await tagger.publish(payload=b"before", header=header)
            found = await root.revise(a_kind(SECOND))
            assert found is not None
            assert found.moved["kbo"] == ("baseball",)
            # with its attributes, a notification is tagged again; without, it is refused
            await reader.publish_content(b'{"topic": "kbo"}', b"stale", tag=tag)
            with pytest.raises(Outdated) as refused:
                await reader.publish_content(b"", b"private", tag=tag)
            assert refused.value.version == root.machine.history.version
            await until(lambda: tagger.view is not None and tagger.view.version > history.version)
            await until(lambda: root.machine.following.count_followers() == (1, 1))
            read = Reader(mlb), Reader(kbo)
            await tagger.publish(payload=b"after", header=await tagger.header({"topic": "kbo"}))
            for one, due in zip(read, ([b"after"], [b"before", b"after"]), strict=True):
                await until(lambda one=one: b"after" in one.payloads)  # type: ignore[misc]
                assert [told for told in one.payloads if told in due] == due
                assert set(one.payloads) <= {*due, b"stale"}
                one.task.cancel()
            # what can't be used changes nothing
            before = root.machine
            with pytest.raises(TidingsError):
                await root.revise(a_kind({**SECOND, "topic": ["nothing"]}, go="go"))
            assert await root.revise(a_kind(SECOND)) is None
            assert root.machine is before
        await root.stop()

    running(work)


def test_those_who_are_not_heard_during_a_revision_must_acknowledge_it(tmp_path: Path) -> None:
    """To read many filters can keep the event loop busy for longer than followers may be silent."""

    class Busy(RootNode):
        is_revising = False

        def _read(self, kind: Kind) -> ArrayInterests:
            if self.is_revising:
                context, now = self.machine.context, self.machine.context.now
                context.now += 2 * FAST.expire
                assert self.machine.following.count_followers() == (0, 0)
                context.now = now
            return super()._read(kind)

    async def work() -> None:
        root = Busy("root", tmp_path / "j", Door(), kind=a_kind(FIRST), times=FAST)
        await root.start()
        async with connect(at(root), tag="local", times=FAST):
            root.is_revising = True
            await root.revise(a_kind(SECOND))
            assert root.machine.following.count_followers() == (1, 0)
            await until(lambda: root.machine.following.count_followers() == (1, 1))
        await root.stop()

    running(work)


async def read_to_the_end(told: Subscription) -> None:
    while True:
        await anext(told)


def test_what_is_set_aside_is_logged_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A revision reads all filters three times; so does a start with a revised file."""

    def lines() -> list[str]:
        return [one.getMessage() for one in caplog.records if "set aside" in one.getMessage()]

    async def work() -> None:
        root = RootNode("root", tmp_path / "j", Door(), kind=a_kind(FIRST), times=FAST)
        await root.start()
        async with (
            connect(at(root), times=FAST, name="reader") as reader,
            reader.subscribe("chess", "topics", name="kept") as told,
        ):
            node = told.node
            assert not lines()
            await root.revise(a_kind(SECOND))
            with pytest.raises(Refusal, match="chess"):
                await read_to_the_end(told)
        await root.stop()
        (line,) = lines()
        assert line.startswith(f"the filter of node {node} is now refused and was set aside")
        caplog.clear()
        again = RootNode("root", tmp_path / "j", Door(), kind=a_kind({"other": []}), times=FAST)
        await again.start()
        assert len(lines()) == 1
        await again.stop()

    running(work)


class Apart(NamedTuple):
    """Two texts that mean the same in one definition of a channel, and not in the other."""

    together: KindDefinition
    apart: KindDefinition
    dialect: str
    attribute: str
    names: tuple[str, str, str]  # two texts, and something that neither asks for
    sql: str
    sql_as: int  # the text that the filter in SQL means
    nodes: int

    @property
    def texts(self) -> tuple[tuple[str, str, str], ...]:
        """Texts with their dialects, and the text that means the same."""
        one, other, _ = self.names
        return (
            (one, self.dialect, one), (other, self.dialect, other),
            (self.sql, "sql", self.names[self.sql_as]),
        )  # fmt: skip


PORTFOLIOS = KindDefinition("application", entry_point="portfolios", version="1")
RENAMED = msgspec.structs.replace(PORTFOLIOS, settings={"renamed": {"SAPG": "SAP"}})
APART = {
    "topics": Apart(
        a_kind(FIRST, soccer="football"), a_kind({**FIRST, "soccer": ["sports"]}), "topics",
        "topic", ("football", "soccer", "chess"), "isa(topic, 'soccer')", 1,
        2,  # a topic and its filter in SQL mean the same forever
    ),
    "application": Apart(
        RENAMED, PORTFOLIOS, "application", "name", ("SAP", "SAPG", "BMW"), "security = 'SAP'", 0,
        3,  # the class may turn a text into any filter
    ),
}  # fmt: skip


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(install(tmp_path / "site")))
    monkeypatch.delitem(sys.modules, "kinds_for_tests", raising=False)


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("case", APART)
def test_texts_that_a_revision_tells_apart(case: str, tmp_path: Path) -> None:
    """Such as a topic and its synonym, which mean the same, and then they do not: whoever
    subscribed to either, in whatever dialect, gets what its own text means, without a break."""
    given = APART[case]
    names, dialect = given.names, given.dialect

    async def work() -> None:
        root = RootNode("root", tmp_path / "j", Door(), kind=given.together, times=FAST)
        await root.start()
        async with contextlib.AsyncExitStack() as stack:
            enter = stack.enter_async_context
            agent = await enter(connect(at(root), times=FAST, name="reader"))
            told = [await enter(agent.subscribe(one, kind)) for one, kind, _ in given.texts]
            assert len({one.node for one in told}) == given.nodes
            away = {one: f"of {one}" for one in names[:2]}
            for one, name in away.items():
                async with agent.subscribe(one, dialect, name=name):
                    pass
            with pytest.raises(Refusal, match=f"found another filter for the name 'of {names[1]}'"):
                await agent.subscribe(names[0], dialect, name=f"of {names[1]}").__aenter__()
            writers = await connect_writers(stack, at(root))

            async def publish(label: bytes) -> dict[str, list[bytes]]:
                return await publish_each(writers, names, label, given.attribute)

            sent = [await publish(b"before")]
            await root.revise(given.apart)
            sent.append(await publish(b"apart"))
            await root.revise(given.together)  # with their own nodes, they go on
            sent.append(await publish(b"together"))
            await root.revise(given.apart)
            sent.append(await publish(b"again"))
            both = [one for name in names[:2] for one in sent[0][name] + sent[2][name]]
            due = {name: {*both, *sent[1][name], *sent[3][name]} for name in names[:2]}
            for own, (_, _, name) in zip(told, given.texts, strict=True):
                assert await read_all(own, len(due[name])) == due[name], name
            for text, name in away.items():
                back = await enter(agent.subscribe(text, dialect, name=name))
                assert await read_all(back, len(due[text])) == due[text], name
        await root.stop()

    running(work)


@pytest.mark.usefixtures("installed")
def test_texts_that_share_a_node_since_an_earlier_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A named subscription stays at the node of the other text, and misses nothing, until a
    revision tells the texts apart. Texts that nobody named get nodes of their own."""

    named = {"SAP": "application", "SAPG": "application", "security = 'SAP'": "sql"}

    async def work() -> None:
        async with contextlib.AsyncExitStack() as stack:
            enter = stack.enter_async_context
            node = 0

            async def reader(root: RootNode) -> Agent:
                return await enter(connect(at(root), times=FAST, name="reader"))

            with monkeypatch.context() as earlier:  # filters decide alone
                earlier.setattr(OwnTexts, "select", lambda _, numbers, __: [*numbers])
                earlier.setattr(OwnTexts, "select_like", lambda _, numbers, __: [*numbers])
                root = RootNode("root", tmp_path / "j", Door(), kind=RENAMED, times=FAST)
                await root.start()
                agent = await reader(root)
                first = await enter(agent.subscribe("SAP", "application"))
                node = first.node
                for text, dialect in named.items():
                    async with agent.subscribe(text, dialect, name=f"of {text}") as told:
                        assert told.node == node
                await agent.publish({"name": "SAP"}, b"missed")
                await agent.close()
                await root.stop()

            root = RootNode("root", tmp_path / "j", Door(), kind=RENAMED, times=FAST)
            await root.start()
            agent = await reader(root)
            for text, dialect in named.items():
                told = await enter(agent.subscribe(text, dialect, name=f"of {text}"))
                assert told.node == node
                assert await read_all(told, 1) == {b"missed"}
            plain = await enter(agent.subscribe("SAPG", "application"))
            assert plain.node == node
            other = await enter(agent.subscribe("SAP SAPG", "application"))
            assert other.node != node
            await agent.publish({"name": "SAPG"}, b"both")
            assert await read_all(other, 1) == {b"both"}
            await root.revise(PORTFOLIOS)
            another = await enter(agent.subscribe("SAPG", "application"))
            await agent.publish({"name": "SAPG"}, b"apart")
            assert await read_all(another, 1) == {b"apart"}
            await agent.close()
            agent = await reader(root)
            again = await enter(agent.subscribe("SAPG", "application", name="of SAPG"))
            assert again.node == another.node
            assert isinstance(await again.next(PATIENCE), Break)
            await agent.close()
            await root.stop()

    running(work)


def test_a_topic_that_becomes_a_synonym_of_the_one_above_it(tmp_path: Path) -> None:
    """The new node of `ball` lies above that of `sports`, which has the same meaning and stays. Its
    subscriber is told how far the numbers of `sports` have come, and asks for none of them."""
    first = a_kind({"sports": [], "ball": ["sports"], "chess": ["sports"]})
    second = a_kind({"sports": [], "chess": ["sports"]}, ball="sports")

    async def work() -> None:
        root = RootNode("root", tmp_path / "j", Door(), kind=first, times=FAST)
        await root.start()
        async with contextlib.AsyncExitStack() as stack:
            enter = stack.enter_async_context
            agent = await enter(connect(at(root), times=FAST))
            told = [await enter(agent.subscribe(one, "topics")) for one in
                    ("ball", "sports", "chess")]  # fmt: skip
            ball, sports = (one.node for one in told[:2])
            writers = await connect_writers(stack, at(root))
            topics = ("sports", "ball", "chess")
            before = await publish_each(writers, topics, b"before")
            await root.revise(second)
            after = await publish_each(writers, topics, b"after")
            assert await read_all(told[0], 4 * len(after["ball"])) == {
                *before["ball"], *(one for topic in topics for one in after[topic])
            }  # fmt: skip
            assert ball < sports == told[1].node < told[0].node
            step = root.journal.history.gone[ball].step
            assert step is not None
            assert step.begins[sports] == len(before["sports"])
        await root.stop()

    running(work)


async def publish_each(
    writers: Iterable[Agent], topics: Iterable[str], label: bytes, attribute: str = "topic"
) -> dict[str, list[bytes]]:
    """Publish under each topic, by each writer."""
    found: dict[str, list[bytes]] = {}
    for topic in topics:
        for at_, writer in enumerate(writers):
            payload = b"%s %s %d" % (label, topic.encode(), at_)
            await writer.publish({attribute: topic}, payload)
            found.setdefault(topic, []).append(payload)
    return found


async def read_all(told: Subscription, count: int) -> set[bytes]:
    """The payloads that come, each once; nothing is lost, and nobody starts over."""
    found: list[bytes] = []
    while (one := await (anext(told) if len(found) < count else told.next(0.3))) is not None:
        if not isinstance(one, Interrupted | Resumed):
            assert isinstance(one, Delivery), one
            found.append(one.payload)
    assert len({*found}) == len(found) == count
    return {*found}
