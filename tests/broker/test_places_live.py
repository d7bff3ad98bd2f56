"""Routers that ask a preprocessor for the places of nodes, over real connections and as processes:
everyone gets exactly what `Filter.matches` says, once, also when the preprocessor is gone."""

from __future__ import annotations

import asyncio
import contextlib
import random
from pathlib import Path

import pytest
from tests.broker.networks import BRIEF, at, payloads, running
from tests.broker.processes import Process
from tests.broker.test_preprocessors_live import TEXTS, Preprocessor, an_event
from tests.waiting import PATIENCE, until

from tidings.broker import Address, Door, PreprocessorNode, RootNode, RouterNode
from tidings.broker.admission.permissions import TokenRights, Tokens
from tidings.broker.config import ConfigError, load_config
from tidings.filters import parse
from tidings.network import Agent, connect, watch
from tidings.network.agent import AgentChannel
from tidings.routing.channels import Route

EDGE = """
name = "edge"
listen = "127.0.0.1:0"
upstream = "127.0.0.1:{port}"
places = "preprocessor"
"""


async def read_and_write(
    reader: AgentChannel, writer: Agent, texts: list[str], chance: random.Random, label: bytes
) -> None:
    """Subscribe to each filter in turn, and publish after each; each filter gets what matches."""
    expected: dict[str, list[bytes]] = {}
    async with contextlib.AsyncExitStack() as stack:
        told = {}
        for step, text in enumerate(texts):
            told[text] = await stack.enter_async_context(reader.subscribe(text))
            expected[text] = []
            many = [(an_event(chance), b"%s %d %d" % (label, step, n)) for n in range(20)]
            await writer.publish_many(many)
            for event, payload in many:
                for known, due in expected.items():
                    if parse(known).matches(event):
                        due.append(payload)
        for text, due in expected.items():
            assert not due or await payloads(told[text], len(due)) == due


def test_places_come_from_a_preprocessor(tmp_path: Path, seed: int) -> None:
    """Then it stops, and the node above gives them; then there is another one."""

    async def work() -> None:
        chance = random.Random(seed)
        root = RootNode("root", tmp_path / "journal.db", Door(), times=BRIEF)
        await root.start()
        chain: list[RouterNode] = []
        for number in range(2):
            above = Address("127.0.0.1", chain[-1].port if chain else root.port)
            node = RouterNode(f"r{number}", above, Door(), times=BRIEF, places="preprocessor")
            await node.start()
            chain.append(node)

        def are_on(on: bool) -> bool:
            return all(one.machine.locating.is_on is on for one in chain)

        def count_located() -> int:
            return sum(one.machine.locating.located for one in chain)

        async with (
            connect(at(root), tag="local", times=BRIEF) as tagger,
            connect(at(chain[-1]), times=BRIEF) as reader,
            connect(at(root), times=BRIEF) as writer,
        ):
            for round_ in range(2):
                preprocessor = PreprocessorNode(f"pre{round_}", tagger, Door(), times=BRIEF)
                await preprocessor.start()
                await until(lambda: are_on(True))
                await read_and_write(reader, writer, TEXTS, chance, b"with %d" % round_)
                await until(lambda: preprocessor.located > 0)
                await until(lambda: count_located() > 0)
                await preprocessor.stop()
                await until(lambda: are_on(False))
                given = count_located()  # some may have been on their way
                others = [f"({one}) AND n <> {round_}" for one in TEXTS]
                await read_and_write(reader, writer, others, chance, b"without %d" % round_)
                assert count_located() == given
        for router in reversed(chain):
            await router.stop()
        await root.stop()

    running(work)


def test_only_routers_get_places(tmp_path: Path, seed: int) -> None:
    """A token without the right to route gets none: its router asks the node above."""

    async def work() -> None:
        chance = random.Random(seed)
        root = RootNode("root", tmp_path / "journal.db", Door(), times=BRIEF)
        await root.start()
        async with connect(at(root), tag="local", times=BRIEF) as tagger:
            tokens: Tokens = {"plain": "edge"}
            preprocessor = PreprocessorNode("pre", tagger, Door(tokens=tokens), times=BRIEF)
            await preprocessor.start()
            edge = RouterNode("edge", Address("127.0.0.1", root.port), Door(), times=BRIEF,
                              token="plain", places="preprocessor",
                              show_token=True)  # fmt: skip
            await edge.start()
            async with connect(at(edge), times=BRIEF) as agent:
                await until(lambda: edge.machine.locating.is_on)
                await read_and_write(agent, agent, TEXTS[:3], chance, b"plain")
                assert preprocessor.located == edge.machine.locating.located == 0
                preprocessor.renew(
                    {"plain": TokenRights("edge", may=frozenset({"route", "subscribe"}))}
                )
                await until(lambda: not edge.machine.locating.is_on)
                await until(lambda: edge.machine.locating.is_on)
                await read_and_write(agent, agent, TEXTS[3:], chance, b"routes")
                await until(lambda: preprocessor.located > 0)
            await edge.stop()
            await preprocessor.stop()
        await root.stop()

    running(work)


async def count_places(address: str) -> int:
    """How many places the router at an address says it got from preprocessors."""
    async with watch(address) as reports:
        return (await anext(reports)).nodes[0].located


async def until_located(reader: AgentChannel, address: str) -> int:
    """Subscribe to ever new filters until a preprocessor gives a place; the number of places."""
    before, number = await count_places(address), 0

    async def subscribe() -> None:
        nonlocal number
        number += 1
        async with reader.subscribe(f"n = {1000 + number}"):
            pass

    located = before
    async with asyncio.timeout(PATIENCE):
        while located == before:
            await subscribe()
            located = await count_places(address)
    return located


def test_processes(tmp_path: Path, seed: int) -> None:
    """A preprocessor that is killed while agents subscribe: it gives the places, and then the node
    above does."""

    async def work(root: Process, edge: Process, preprocessor: Preprocessor) -> None:
        chance = random.Random(seed)
        place = f"tidings://127.0.0.1:{edge.port}"
        async with connect(place) as reader, connect(f"tidings://127.0.0.1:{root.port}") as writer:
            before = await until_located(reader, place)
            await read_and_write(reader, writer, TEXTS, chance, b"with")
            given = await count_places(place)
            # the root gives a place if the preprocessor is late
            assert before < given <= before + len(TEXTS)
            preprocessor.kill()
            others = [f"({one}) AND n <> 8" for one in TEXTS]
            await read_and_write(reader, writer, others, chance, b"without")
            assert await count_places(place) == given

    text = 'name = "root"\nlisten = "127.0.0.1:0"\njournal = "journal.db"\n'
    root = Process(tmp_path, "root", text)
    preprocessor = Preprocessor(tmp_path, "pre", root.port)
    edge = Process(tmp_path, "edge", EDGE.format(port=root.port))
    running(lambda: work(root, edge, preprocessor))
    assert "could not handle" not in edge.log()
    assert [one.stop() for one in (edge, root)] == [0, 0]


CHANNEL_ROOT = 'name = "{0}"\nchannel = "{0}"\nlisten = "127.0.0.1:0"\njournal = "{0}.db"\n'
TWO = """
name = "edge"
channel = "fx"
listen = "127.0.0.1:0"
upstream = "127.0.0.1:{fx}"
places = "preprocessor"
[upstreams]
west = "127.0.0.1:{tea}"
[channels]
tea = "west"
"""


def test_two_channels_as_processes(tmp_path: Path, seed: int) -> None:
    """Each channel has a rendezvous point and a preprocessor of its own; one preprocessor is
    killed, and the other goes on."""
    roots = {name: Process(tmp_path, name, CHANNEL_ROOT.format(name)) for name in ("fx", "tea")}
    tagging = {name: Preprocessor(tmp_path, f"pre-{name}", one.port, name)
               for name, one in roots.items()}  # fmt: skip
    ports = {name: one.port for name, one in roots.items()}
    edge = Process(tmp_path, "edge", TWO.format(**ports))
    place = f"tidings://127.0.0.1:{edge.port}/fx"

    async def work() -> None:
        chance = random.Random(seed)
        async with contextlib.AsyncExitStack() as stack:
            agent = await stack.enter_async_context(connect(place))
            readers: dict[str, AgentChannel] = {"fx": agent, "tea": agent.channel("tea")}
            writers = {
                name: await stack.enter_async_context(connect(f"tidings://127.0.0.1:{port}/{name}"))
                for name, port in ports.items()
            }
            for round_, gone in enumerate(("", "fx")):
                if gone:
                    tagging[gone].kill()
                for name, reader in readers.items():
                    texts = [f"({one}) AND (m IS NULL OR m > {round_})" for one in TEXTS]
                    before = await count_places(place)
                    if name != gone:
                        before = await until_located(reader, place)
                    label = f"{name} {round_}".encode()
                    await read_and_write(reader, writers[name], texts, chance, label)
                    given = await count_places(place) - before
                    if name == gone:
                        assert not given
                    else:  # the root gives a place if the preprocessor is late
                        assert 0 < given <= len(texts), (name, round_)

    running(work)
    assert tagging["tea"].stop() == 0
    assert "could not handle" not in edge.log()
    assert [one.stop() for one in (edge, *roots.values())] == [0, 0, 0]


def test_a_channel_stops_seeking_when_it_sleeps(tmp_path: Path, seed: int) -> None:
    """And begins again when it needs a place; a channel that needs none has no locator."""

    async def work() -> None:
        chance = random.Random(seed)
        roots = {name: RootNode(name, tmp_path / name, Door(channel=name), times=BRIEF)
                 for name in ("fx", "tea")}  # fmt: skip
        for one in roots.values():
            await one.start()
        above = {name: Address("127.0.0.1", one.port) for name, one in roots.items()}
        edge = RouterNode("edge", above["fx"], Door(channel="fx"), times=BRIEF,
                          hops={"west": [above["tea"]]}, routes={"tea": Route("west")},
                          places="preprocessor")  # fmt: skip
        await edge.start()
        locators = edge.locators
        assert locators is not None
        tea_root = f"tidings://127.0.0.1:{roots['tea'].port}/tea"
        async with (
            connect(tea_root, tag="local", times=BRIEF) as tagger,
            connect(tea_root, times=BRIEF) as writer,
            connect(f"tidings://127.0.0.1:{edge.port}/fx", times=BRIEF) as agent,
        ):
            preprocessor = PreprocessorNode("pre", tagger, Door(channel="tea"), times=BRIEF)
            await preprocessor.start()
            tea = agent.channel("tea")
            async with tea.subscribe("n = 100") as kept:
                for round_ in range(3):
                    texts = [f"({one}) AND (m IS NULL OR m > {round_})" for one in TEXTS[:3]]
                    async with tea.subscribe(f"n = {200 + round_}"):
                        channel = edge.channels.known["tea"]
                        await until(lambda: channel.machine.locating.is_on)
                        before = edge.located
                        await read_and_write(tea, writer, texts, chance, b"%d" % round_)
                        assert edge.located > before
                    await until(lambda: channel.asleep is not None)
                    await until(lambda: len(locators) == 1)
                    await writer.publish({"n": 100}, b"%d" % round_)  # wakes it
                    assert await payloads(kept, 1) == [b"%d" % round_]
                    await until(lambda: channel.asleep is not None)
                    assert len(locators) == 1
            await preprocessor.stop()
        await edge.stop()
        for one in roots.values():
            await one.stop()

    running(work)


def test_the_token_is_not_shown(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A router does not show its token either, unless its file says so."""

    async def work() -> None:
        root = RootNode("root", tmp_path / "journal.db", Door(), times=BRIEF)
        await root.start()
        async with connect(at(root), tag="local", times=BRIEF) as tagger:
            preprocessor = PreprocessorNode("pre", tagger, Door(tokens={"t": "x"}), times=BRIEF)
            await preprocessor.start()
            edge = RouterNode("edge", Address("127.0.0.1", root.port), Door(), times=BRIEF,
                              token="t", places="preprocessor")  # fmt: skip
            await edge.start()
            assert edge.locators is not None
            locator = edge.locators.find(edge.own)
            assert locator is not None
            sought = locator.preprocessors
            await until(lambda: sought.refusal)
            assert not edge.machine.locating.is_on
            assert sought.refusal.endswith(
                "set ticket_key in the file of the node above, or show_token = true in the file of "
                "this router"
            )
            assert caplog.text.count(sought.refusal) == 1
            await edge.stop()
            await preprocessor.stop()
        await root.stop()

    running(work)


def test_the_setting_needs_preprocessors(tmp_path: Path) -> None:
    path = tmp_path / "edge.toml"
    path.write_text('name = "r"\nlisten = "h:1"\nupstream = "h:2"\nshow_token = true\n')
    with pytest.raises(ConfigError, match='found show_token without places = "pre'):
        load_config(path)
    path.write_text(path.read_text() + 'places = "preprocessor"\n')
    assert load_config(path).show_token


def test_a_rendezvous_point_has_no_such_setting(tmp_path: Path) -> None:
    path = tmp_path / "root.toml"
    path.write_text('name = "r"\nlisten = "h:1"\njournal = "j"\nplaces = "preprocessor"\n')
    with pytest.raises(ConfigError, match="found places, which only a router may have"):
        load_config(path)
