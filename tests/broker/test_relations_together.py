"""Early bodies, related interests, the order of merit and cancellations in one network: everybody
gets what a full scan finds, once, marked as a match or as related."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.broker.networks import FAST, at
from tests.channel.related_world import SETTINGS, Want, draw_event, draw_want
from tests.repeats import rounds
from tests.waiting import PATIENCE, until

from tidings.broker import Address, Door, RootNode, RouterNode
from tidings.broker.queues import publications
from tidings.broker.queues.merit_publications import MeritPublications
from tidings.network import Agent, Subscription, connect
from tidings.network.link import MOST_WAITING
from tidings.relations import Limit
from tidings.routing.clients import Delivery
from tidings.routing.learning import EarlySettings

Node = RootNode | RouterNode


class Reader:
    """A subscription, what it got, and what it should get: payloads with weights, None for a
    match."""

    def __init__(self, want: Want) -> None:
        self.want = want
        self.got: list[tuple[bytes, float | None]] = []
        self.due: dict[bytes, float | None] = {}

    def expect(self, event: dict[str, Any], payload: bytes) -> None:
        weight = self.want.gets(event)
        if weight is None or weight > 0:
            self.due[payload] = weight

    def is_done(self) -> bool:
        return len(self.got) >= len(self.due)

    async def read(self, subscription: Subscription) -> None:
        async for one in subscription:
            if isinstance(one, Delivery):
                self.got.append((one.payload, None if one.related is None else one.related.weight))

    def judge(self) -> Counter[str]:
        assert len({payload for payload, _ in self.got}) == len(self.got)
        assert dict(self.got) == pytest.approx(self.due), self.want
        return Counter("exact" if weight is None else "related" for _, weight in self.got)


async def start(folder: Path, stack: AsyncExitStack) -> list[Node]:
    """A root whose order is merit, two routers below it, and a third below the first."""
    settings = SETTINGS._replace(order="merit", limit=Limit(0.5))
    root = RootNode("root", folder / "journal.db", Door(), times=FAST, relations=settings)
    await root.start()
    stack.push_async_callback(root.stop)
    nodes: list[Node] = [root]
    for name, above in (("a", 0), ("b", 0), ("c", 1)):
        node = RouterNode(
            name, Address("127.0.0.1", nodes[above].port), Door(), times=FAST,
            relations=lambda: EarlySettings(SETTINGS.semantic, limit=Limit(0.5)),
        )  # fmt: skip
        await node.start()
        stack.push_async_callback(node.stop)
        nodes.append(node)
    return nodes


def draw_possible_want(chance: random.Random) -> Want:
    """A want that is not refused, because it names values if it wants what is related."""
    while True:
        want = draw_want(chance)
        if want.least is None or any(clause.named() for clause in want.clauses):
            return want


def test_everything_together(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(seed)
    monkeypatch.setattr(publications, "SLICE", 0.0)  # publications wait, so their order is merit
    events = [draw_event(chance) for _ in range(12)]  # values come again
    found: Counter[str] = Counter()

    async def publish(writers: list[Agent], readers: list[Reader], number: int) -> None:
        burst = []
        for one in range(chance.choice((1, 3, 12))):
            event = chance.choice(events)
            payload = b"%d-%d " % (number, one) + bytes(chance.choice((0, 2_000, 30_000)))
            for reader in readers:
                reader.expect(event, payload)
            burst.append(chance.choice(writers).publish_soon(event, payload))
        await asyncio.gather(*burst)

    async def work() -> None:
        async with AsyncExitStack() as stack:
            nodes = await start(tmp_path, stack)
            root = nodes[0]
            assert isinstance(root, RootNode)
            assert isinstance(root.publications, MeritPublications)
            assert root._merits is not None
            agents = [
                await stack.enter_async_context(connect(at(node), times=FAST)) for node in nodes
            ]
            writers = [
                await stack.enter_async_context(connect(at(nodes[one]), times=FAST))
                for one in (0, 2)
            ]
            readers: dict[Reader, tuple[AsyncExitStack, asyncio.Task[None]]] = {}
            most_merit = 0.0
            for number in rounds(40, 250):
                if len(readers) < 5 or (chance.random() < 0.3 and len(readers) < 12):
                    reader = Reader(draw_possible_want(chance))
                    inner = await stack.enter_async_context(AsyncExitStack())
                    wanted = chance.choice(agents).subscribe(
                        reader.want.write(), related=reader.want.least
                    )
                    told = await inner.enter_async_context(wanted)
                    readers[reader] = inner, asyncio.create_task(reader.read(told))
                elif chance.random() < 0.25:
                    reader = chance.choice([*readers])
                    await until(reader.is_done)
                    inner, task = readers.pop(reader)
                    task.cancel()
                    await inner.aclose()
                    found.update(reader.judge())
                full = [
                    link for node in nodes for link in node.links.values() if chance.random() < 0.05
                ]
                for link in full:
                    link.most_waiting = -1  # nothing fits
                await publish(writers, [*readers], number)
                for link in full:
                    link.most_waiting = MOST_WAITING
                most_merit = max(most_merit, len(root._merits._forwarded.store))
                if chance.random() < 0.08:
                    node = chance.choice(nodes)
                    if node.links:
                        node.links[chance.choice([*node.links])].abort("the test cuts it")
            for reader in readers:
                await until(reader.is_done)
                found.update(reader.judge())
            counts = [node.early.count() for node in nodes if node.early is not None]
            found["early"] = sum(used for _, used in counts)
            found["learnt"] = int(most_merit)
            for inner, task in readers.values():
                task.cancel()
                await inner.aclose()
            # all have cancelled: nothing that was learnt is left
            await until(lambda: not root.machine.wants)
            root._merits.work(1)
            assert not root._merits._forwarded.store

    asyncio.run(asyncio.wait_for(work(), 3 * PATIENCE))
    assert all(found[kind] for kind in ("exact", "related", "early", "learnt")), found
