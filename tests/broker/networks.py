"""Networks in one process: a root and a chain of routers over real connections."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import msgspec
from tests.waiting import PATIENCE

from tidings.broker import Address, Door, RootNode, RouterNode
from tidings.network.agent import Agent, Subscription, Tagging, connect
from tidings.routing.clients import Interrupted, Resumed
from tidings.routing.clients.subscriber import Delivery
from tidings.routing.protocol.times import Times

# For most tests: on a busy machine, an event loop can stand still for seconds, and nobody who is
# there should count as gone for that.
FAST = Times(beat=0.1, resubscribe=0.2, retry=0.2, silent=20.0, expire=40.0, request=5.0)
# For tests of what happens when nothing is heard for a time.
BRIEF = msgspec.structs.replace(FAST, silent=1.0, expire=2.0)
Network = tuple[RootNode, list[RouterNode]]


def running(work: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(work(), PATIENCE))


async def started(folder: Path, routers: int, times: Times = FAST, **door: object) -> Network:
    """A root, and a chain of routers beneath it."""
    root = RootNode("root", folder / "journal.db", Door(**door), times=times)  # type: ignore[arg-type]
    await root.start()
    chain: list[RouterNode] = []
    for number in range(routers):
        above = chain[-1].port if chain else root.port
        node = RouterNode(f"r{number}", Address("127.0.0.1", above), Door(**door), times=times)  # type: ignore[arg-type]
        await node.start()
        chain.append(node)
    return root, chain


async def stopped(network: Network) -> None:
    root, chain = network
    for node in (*reversed(chain), root):
        await node.stop()


def at(node: RootNode | RouterNode) -> str:
    return f"tidings://127.0.0.1:{node.port}"


async def payloads(subscription: Subscription, count: int) -> list[bytes]:
    found = []
    async for one in subscription:
        if isinstance(one, Interrupted | Resumed):
            continue
        assert isinstance(one, Delivery)
        found.append(one.payload)
        if len(found) == count:
            return found
    raise AssertionError("it ended")


async def connect_writers(stack: AsyncExitStack, place: str) -> list[Agent]:
    """Three agents whose notifications are tagged in the three possible ways."""
    ways: tuple[Tagging, ...] = ("root", "local", "preprocessor")
    return [await stack.enter_async_context(connect(place, tag=tag)) for tag in ways]
