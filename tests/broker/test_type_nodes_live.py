"""A channel of types in which notifications add nodes, as real processes that are killed, and
revised while they run: the nodes keep their numbers, all who tag use them, and subscribers get the
same as ever."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.broker.networks import FAST, at, connect_writers, payloads, running
from tests.broker.processes import Process
from tests.broker.test_kinds_live import EDGE, run
from tests.broker.test_preprocessors_live import Preprocessor, kill
from tests.broker.test_revisions_live import Reader, revise_by_command
from tests.waiting import until

from tidings.broker import Door, RootNode
from tidings.network import Agent, connect
from tidings.network.agent import Subscription
from tidings.preprocessing import KindDefinition
from tidings.routing.protocol import unpack_tag
from tidings.store import ChangeLog
from tidings.studies.host.ports import free_ports

ROOT = """
name = "root"
listen = "127.0.0.1:{port}"
journal = "journal.db"
[preprocessor]
kind = "types"
nodes_for_types = {most}
[preprocessor.types.event]
[preprocessor.types.deal]
[preprocessor.types.quote]
extends = "event"
columns = {{price = "double"}}
[preprocessor.types.trade]
extends = ["quote", "deal"]
[preprocessor.types.offer]
extends = "quote"
[preprocessor.types.order]
extends = "event"
"""
ABOVE = {"event": ["event"], "deal": ["deal"], "quote": ["quote", "event"],
         "trade": ["trade", "quote", "event", "deal"], "offer": ["offer", "quote", "event"],
         "order": ["order", "event"]}  # fmt: skip


def nodes_of_channel(folder: Path) -> dict[str, int]:
    """The nodes that nobody but the channel owns, by their filters."""
    state = ChangeLog(folder / "journal.db").state()
    return {
        text: node
        for id_, (text, node) in state.subscriptions.items()
        if state.owners.get(id_) == "the channel"
    }


def test_in_processes_that_are_killed(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    (port,) = free_ports(1)
    file = ROOT.format(port=port, most=3)
    root = Process(tmp_path, "root", file)
    edge = Process(tmp_path, "edge", EDGE.format(port=port))
    tagging = Preprocessor(tmp_path, "tagging", port)
    above = {name: list(names) for name, names in ABOVE.items()}
    expected: dict[str, list[bytes]] = {name: [] for name in above}
    number = 0

    async def publish(writers: Iterable[Agent], types: Iterable[str]) -> None:
        nonlocal number
        for writer in writers:
            pairs = []
            for _ in range(40):
                number += 1
                type_ = chance.choice([*types])
                pairs.append(({"type": type_}, b"%d" % number))
                for name in above[type_]:
                    expected[name].append(b"%d" % number)
            for event, payload in pairs[:10]:
                await writer.publish(event, payload)
            await writer.publish_many(pairs[10:])

    async def check(read: Mapping[str, Reader], since: Mapping[str, int]) -> None:
        for name, one in read.items():
            due = expected[name][since.get(name, 0) :]
            await until(lambda one=one, due=due: len(one.payloads) >= len(due))  # type: ignore[misc]
            assert one.payloads == due, name
            assert (one.breaks, one.refusal) == (0, ""), name

    async def work() -> None:
        nonlocal root
        place = f"tidings://127.0.0.1:{edge.port}"
        async with contextlib.AsyncExitStack() as stack:
            agent = await stack.enter_async_context(connect(place, name="reader"))
            writers = await connect_writers(stack, place)

            async def subscribe(name: str, durable: str = "") -> Subscription:
                one = agent.subscribe(name, "types", timeout=60, name=durable)
                return await stack.enter_async_context(one)

            told = {"event": await subscribe("event"), "deal": await subscribe("deal", "deals")}
            read = {name: Reader(one) for name, one in told.items()}
            since: dict[str, int] = {}
            for type_ in ("trade", "quote", "order"):
                await publish(writers, [type_])
            await publish(writers, above)
            nodes = nodes_of_channel(tmp_path)
            types = ["trade", "quote", "order"]  # there is no room for offers
            assert [*nodes] == [f"isa(type, '{one}')" for one in types]
            trade, quote, order = nodes.values()
            # all who tag have the nodes
            view = writers[1].view
            await until(lambda: view.version >= order)
            for type_, due in {"trade": [trade], "offer": [quote], "order": [order]}.items():
                tag = unpack_tag(view.tag(b'{"type": "%s"}' % type_.encode()))
                assert tag is not None
                assert [*tag.nodes] == due
            await check(read, since)
            kill(root)
            root = Process(tmp_path, "root", file)
            await publish(writers, above)
            await check(read, since)
            assert nodes_of_channel(tmp_path) == nodes
            # one who asks for a type gets its node, and a removed type stands for those above it
            since["order"] = len(expected["order"])
            told["order"] = await subscribe("order")
            assert told["order"].node == order
            read["order"] = Reader(told["order"])
            await publish(writers, above)
            quote_table = file[file.index("[preprocessor.types.quote]") :]
            revised = file.replace(quote_table, quote_table.replace('"quote", ', '"event", ')
                                   .replace('extends = "quote"', 'extends = "event"'))  # fmt: skip
            start = revised.index("[preprocessor.types.quote]")
            end = revised.index("[preprocessor.types.trade]")
            revised = revised[:start] + revised[end:]
            (tmp_path / "root.toml").write_text(revised)
            said = await asyncio.to_thread(revise_by_command, tmp_path, port)
            assert "acknowledged by 2 of 2" in said
            assert "'quote' was removed, and now means 'event'" in root.log()
            await publish(writers, above)  # notifications of `quote` count as those of `event`
            await check(read, since)
            after = nodes_of_channel(tmp_path)
            assert after["isa(type, 'trade')"] == trade
            assert {"isa(type, 'offer')", "isa(type, 'quote')"} < after.keys()
            kill(root)
            root = Process(tmp_path, "root", revised)
            await publish(writers, above)
            await check(read, since)
            assert nodes_of_channel(tmp_path) == after
            since["trade"] = len(expected["trade"])
            told["trade"] = await subscribe("trade")
            assert told["trade"].node == trade
            read["trade"] = Reader(told["trade"])
            await publish(writers, above)
            await check(read, since)
            for one in read.values():
                one.task.cancel()

    try:
        run(work())
    finally:
        tagging.stop()
        edge.stop()
        root.stop()


def test_the_setting_may_change_while_it_runs(tmp_path: Path) -> None:
    """Switched on, off and on again by revisions: nobody notices, and what is too much goes."""

    def kind(most: int) -> KindDefinition:
        parents = {"event": (), "quote": ("event",), "trade": ("quote",)}
        return KindDefinition("types", "type", parents, nodes_for_types=most)

    async def work() -> None:
        root = RootNode("root", tmp_path / "journal.db", Door(), kind=kind(0), times=FAST)
        await root.start()
        async with (
            connect(at(root), times=FAST) as agent,
            agent.subscribe("event", "types") as told,
        ):
            due: list[bytes] = []

            async def publish() -> None:
                for type_ in ("quote", "trade"):
                    due.append(b"%d" % len(due))
                    await agent.publish({"type": type_}, due[-1])

            await publish()
            assert not nodes_of_channel(tmp_path)
            await root.revise(kind(5))
            await publish()
            assert [*nodes_of_channel(tmp_path)] == ["isa(type, 'quote')", "isa(type, 'trade')"]
            node = nodes_of_channel(tmp_path)["isa(type, 'quote')"]
            changes = ChangeLog(tmp_path / "journal.db").changes(0)
            assert [one.owner for one in changes if one.node == node] == ["the channel"]
            await root.revise(kind(1))
            await publish()
            assert root.machine.nodes.kept == {node}
            await root.revise(kind(0))
            await publish()
            assert root.machine.nodes.kept == set()
            await root.revise(kind(1))
            await publish()
            assert root.machine.nodes.kept == {node}
            assert await payloads(told, len(due)) == due
        await root.stop()

    running(work)
