"""Agents that follow the advice of their channel: they move to better routers, and everyone gets
everything once and in order meanwhile. Over real connections and as processes."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections import Counter
from pathlib import Path

from tests.broker.networks import BRIEF, at, payloads, running
from tests.broker.processes import Process
from tests.waiting import until

from tidings.broker import Address, Door, RootNode, RouterNode
from tidings.network import Agent, connect
from tidings.routing.clients import ChoosingTimes
from tidings.routing.clients.subscriber import Delivery
from tidings.routing.protocol import Limits

SOON = ChoosingTimes(ask=0.2, spread=0.3, stay=1.0)


async def a_tree(folder: Path, routers: int, **door: object) -> tuple[RootNode, list[RouterNode]]:
    """A root, and routers beneath it."""
    root = RootNode("root", folder / "journal.db", Door(), times=BRIEF)
    await root.start()
    found = []
    for number in range(routers):
        node = RouterNode(
            f"r{number}", Address("127.0.0.1", root.port), Door(**door), times=BRIEF  # type: ignore[arg-type]
        )  # fmt: skip
        await node.start()
        found.append(node)
    return root, found


def router_of(agent: Agent) -> str:
    return agent._agent_link.router_name


def moves_of(agent: Agent) -> int:
    assert agent._moving is not None
    return agent._moving.moves


def test_from_the_rendezvous_point_to_a_router(tmp_path: Path) -> None:
    """While it subscribes and publishes: nothing is lost or doubled, nothing interrupts the
    subscription; when its router ends, it goes on at another one."""

    async def work() -> None:
        root, routers = await a_tree(tmp_path, 2)
        items: list[object] = []

        async def read(agent: Agent) -> None:
            nonlocal items
            async with agent.subscribe("n >= 0") as told:
                async for one in told:
                    items += [one]

        async def write(agent: Agent, first: int, many: int) -> None:
            for number in range(first, first + many):
                await agent.publish({"n": number}, b"%d" % number)

        async with connect(at(root), times=BRIEF, advice=SOON) as agent:
            assert router_of(agent) == "root"
            reading = asyncio.create_task(read(agent))
            await until(lambda: root.machine.graph)
            count = 0
            while not moves_of(agent):
                await write(agent, count, 20)
                count += 20
            await write(agent, count, 100)
            count += 100
            assert router_of(agent) in ("r0", "r1")
            await until(lambda: len(items) >= count)
            assert [one.payload for one in items if isinstance(one, Delivery)] == [
                b"%d" % number for number in range(count)
            ]
            assert len(items) == count  # no Interrupted
            assert agent.state.linked
            used = next(one for one in routers if one.machine.name == router_of(agent))
            assert agent.state.router == f"127.0.0.1:{used.port}"
            await used.stop()
            await write(agent, count, 20)
            count += 20
            await until(lambda: sum(isinstance(one, Delivery) for one in items) >= count)
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
        for node in routers:
            if node is not used:
                await node.stop()
        await root.stop()

    running(work)


def test_a_crowd_spreads(tmp_path: Path) -> None:
    """Twenty agents at a router with 24 places: some leave, and then all stay."""

    async def work() -> None:
        root, routers = await a_tree(tmp_path, 3, limits=Limits(neighbours=24))
        async with contextlib.AsyncExitStack() as stack:
            agents = [
                await stack.enter_async_context(
                    connect(at(routers[0]), name=f"a{number}", times=BRIEF, advice=SOON)
                )
                for number in range(20)
            ]
            told = [await stack.enter_async_context(one.subscribe("n > 0")) for one in agents]
            writer = await stack.enter_async_context(connect(at(root), times=BRIEF))

            def crowd() -> int:
                return max(Counter(map(router_of, agents)).values())

            count = 0
            while crowd() > 14 and count < 2000:
                count += 1
                await writer.publish({"n": 1}, b"%d" % count)
                await asyncio.sleep(0.05)
            assert crowd() <= 14
            for one in told:
                assert await payloads(one, count) == [
                    b"%d" % number for number in range(1, count + 1)
                ]
        for node in routers:
            await node.stop()
        await root.stop()

    running(work)


def test_routers_that_can_not_be_used(tmp_path: Path) -> None:
    """One refuses the agent's token, and one is not to be advised: the agent stays."""

    async def work() -> None:
        root, routers = await a_tree(tmp_path, 1, public="")
        refuses = RouterNode(
            "refuses", Address("127.0.0.1", root.port), Door(tokens={"t": "other"}), times=BRIEF
        )
        await refuses.start()
        async with connect(at(root), times=BRIEF, advice=SOON) as agent:
            moving = agent._moving
            assert moving is not None
            await until(lambda: "refuses" in moving._choosing._failed)
            assert list(moving._choosing.addresses) == ["refuses"]
            assert router_of(agent) == "root"
            async with agent.subscribe("n > 0") as told:
                await agent.publish({"n": 1}, b"1")
                assert await payloads(told, 1) == [b"1"]
        for node in (*routers, refuses):
            await node.stop()
        await root.stop()

    running(work)


ROUTER = 'name = "{name}"\nlisten = "127.0.0.1:0"\nupstream = "127.0.0.1:{port}"\n'


def test_processes(tmp_path: Path) -> None:
    """The router of an agent is killed after the agent has moved to it."""
    text = 'name = "root"\nlisten = "127.0.0.1:0"\njournal = "journal.db"\n'
    root = Process(tmp_path, "root", text)
    routers = {
        name: Process(tmp_path, name, ROUTER.format(name=name, port=root.port))
        for name in ("east", "west")
    }

    async def work() -> None:
        times = ChoosingTimes(ask=0.5, spread=0.5, stay=1.0)
        async with (
            connect(f"tidings://127.0.0.1:{root.port}", advice=times) as agent,
            agent.subscribe("n > 0") as told,
        ):
            await until(lambda: moves_of(agent))
            await agent.publish({"n": 1}, b"1")
            used = routers[router_of(agent)]
            used.signal(signal.SIGKILL)
            await agent.publish({"n": 2}, b"2")
            assert await payloads(told, 2) == [b"1", b"2"]
            await until(lambda: agent.state.linked)
            assert agent.state.router != f"127.0.0.1:{used.port}"

    running(work)
    for one in (*routers.values(), root):
        one.stop()
