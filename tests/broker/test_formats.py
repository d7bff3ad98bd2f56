"""Attributes in each format, at a running rendezvous point: matched, and given to subscribers."""

from __future__ import annotations

import asyncio
import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from tidings import Agent, Delivery, Refusal, connect, connect_blocking
from tidings.broker import Door, RootNode
from tidings.channel.interests import ArrayInterests
from tidings.filters import Attributes
from tidings.model import NotificationError
from tidings.network.agents import encode_attributes

XML = b'<quote><kind>ale</kind><price type="integer">95</price></quote>'
EVENT = {"kind": "ale", "price": 95}
CLOUD = {
    "specversion": "1.0", "id": "7", "source": "/shop", "type": "sold", "kind": "ale", "price": 95,
    "data": {"litres": 3},
}  # fmt: skip


async def take(told: Any, many: int) -> list[Delivery]:
    found: list[Delivery] = []
    while len(found) < many:
        item = await told.next(60)
        assert isinstance(item, Delivery), item
        found.append(item)
    return found


async def work_with(root: RootNode, agent: Agent) -> None:
    async with agent.subscribe("kind = 'ale' AND price > 90", timeout=60) as told:
        await agent.publish(XML, b"1")
        await agent.publish(msgspec.msgpack.encode(EVENT), b"2")
        await agent.publish(msgspec.json.encode(EVENT), b"3")
        await agent.publish(CLOUD, b"4")
        assert [one.payload for one in await take(told, 3)] == [b"1", b"2", b"3"]
        (last,) = await take(told, 1)
        assert last.attributes == CLOUD
        with pytest.raises(Refusal, match="found a document type"):
            await agent.publish(b"<!DOCTYPE n><n/>")
        mixed = [
            (one, b"%d" % at)
            for at in range(300)
            for one in (XML, EVENT, msgspec.msgpack.encode(EVENT))
        ]
        assert await agent.publish_many(mixed) == 900
        assert [one.payload for one in await take(told, 900)] == [one for _, one in mixed]


def test_all_formats_reach_a_subscriber(tmp_path: Path) -> None:
    async def main() -> None:
        root = RootNode("root", tmp_path / "journal", Door())
        await root.start()
        try:
            async with connect(f"tidings://127.0.0.1:{root.port}") as agent:
                await work_with(root, agent)
        finally:
            await root.stop()

    asyncio.run(main())


TABLE = pa.table(
    {
        "kind": ["ale", None, "ale"],
        "price": [Decimal("91.5"), Decimal("3.0"), Decimal("99.25")],
        "at": [datetime.date(2026, 1, day) for day in (1, 2, 3)],
        "payload": [b"one", None, b"three"],
    }
)


def test_the_rows_of_arrow_data(tmp_path: Path) -> None:
    async def main() -> None:
        root = RootNode("root", tmp_path / "journal", Door())
        await root.start()
        address = f"tidings://127.0.0.1:{root.port}"
        try:
            async with connect(address) as agent, agent.subscribe("price > 1", timeout=60) as told:
                assert await agent.publish_many(TABLE) == 3
                assert await agent.publish_many(TABLE.drop_columns("payload").to_batches()[0]) == 3
                found = await take(told, 6)
                assert [one.payload for one in found] == [b"one", b"", b"three", b"", b"", b""]
                days = [datetime.datetime(2026, 1, day, tzinfo=datetime.UTC) for day in (1, 2)]
                assert found[0].attributes == {"kind": "ale", "price": 91.5, "at": days[0]}
                assert found[1].attributes == {"price": 3.0, "at": days[1]}
                twice = pa.table([[1], [2]], names=["a", "a"])
                with pytest.raises(NotificationError, match="found the column 'a' more than once"):
                    await agent.publish_many(twice)
                with pytest.raises(NotificationError, match="column payload: found int"):
                    await agent.publish_many(pa.table({"payload": [1]}))

                def from_thread() -> int:
                    with connect_blocking(address) as blocking:
                        return blocking.publish_many(TABLE)

                assert await asyncio.to_thread(from_thread) == 3
                assert len(await take(told, 3)) == 3
        finally:
            await root.stop()

    asyncio.run(main())


def test_declared_attributes_in_each_format() -> None:
    """A text in XML is read as the declared type."""
    declared = Attributes({"kind": "string", "price": "decimal(10,2)", "on": "date"})
    interests = ArrayInterests(declared)
    node = interests.place(b"price > 90 AND on = DATE '2026-01-01'").node
    for content in (
        b'{"price": 95.5, "on": "2026-01-01"}',
        b"<n><price>95.5</price><on>2026-01-01</on></n>",
        msgspec.msgpack.encode({"price": 95.5, "on": "2026-01-01"}),
        encode_attributes({"price": Decimal("95.50"), "on": datetime.date(2026, 1, 1)}),
    ):
        assert [*interests.tag(content)] == [node]
    with pytest.raises(NotificationError, match="price"):
        interests.tag(b"<n><price>dear</price></n>")
