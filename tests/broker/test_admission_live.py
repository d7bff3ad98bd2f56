"""Clients with different tokens compete at a rendezvous point that is a separate process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.broker.processes import Process

from tidings.network.agent import connect
from tidings.routing.clients.subscriber import Delivery
from tidings.routing.protocol import frames, messages as m

ROOT = """
name = "root"
listen = "127.0.0.1:0"
journal = "journal.db"
[limits]
neighbours = 200
[tokens]
hostile = "eve"
guest = "*"
other = "*"
reads = "reader"
writes = "writer"
ours = {name = "edge", may = ["route"]}
"""
EDGE = """
name = "edge"
listen = "127.0.0.1:0"
upstream = "127.0.0.1:{port}"
token = "{token}"
"""


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Process]:
    one = Process(tmp_path, "root", ROOT)
    yield one
    assert one.stop() == 0


class Raw:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def hear(self) -> m.Message:
        head = await asyncio.wait_for(self.reader.readexactly(4), 20)
        rest = await self.reader.readexactly(int.from_bytes(head, "little"))
        return frames.decode(head + rest)


@asynccontextmanager
async def raw(port: int, *said: m.Message) -> AsyncIterator[Raw]:
    one = Raw(*await asyncio.open_connection("127.0.0.1", port))
    one.writer.write(b"".join(map(frames.encode, said)))
    try:
        yield one
    finally:
        one.writer.transport.abort()


async def _deliver(port: int, count: int) -> None:
    """A pair with names of its own that comes, and is served."""
    at = f"tidings://127.0.0.1:{port}"
    async with (
        connect(at, name="reader", token="reads") as reader,
        connect(at, name="writer", token="writes") as writer,
        reader.subscribe("n > 0") as told,
    ):
        for n in range(1, count + 1):
            await writer.publish({"n": n}, b"%d" % n)
        found = [await asyncio.wait_for(anext(told), 20) for _ in range(count)]
        assert [one.payload for one in found if isinstance(one, Delivery)] == [
            b"%d" % n for n in range(1, count + 1)
        ]


def test_a_forged_stamp_of_a_plain_token_erases_nobody(root: Process) -> None:
    """One frame with a stamp beyond all others had the next 20 acknowledged and dropped."""

    async def work() -> None:
        at = f"tidings://127.0.0.1:{root.port}"
        async with (
            connect(at, name="reader", token="reads") as reader,
            connect(at, name="writer", token="writes") as writer,
            reader.subscribe("n > 0") as told,
        ):
            await writer.publish({"n": 1}, b"0")
            forged = m.Publish(writer._publisher.name, 1 << 62, 1 << 62, b"{}", b"")
            for routes in (True, False):
                hello = m.Hello("eve", token="hostile", routes=routes)
                async with raw(root.port, hello, forged) as eve:
                    heard = await eve.hear()
                    assert isinstance(heard, m.Goodbye) == routes
                    while not isinstance(heard, m.Goodbye | m.Published):
                        heard = await eve.hear()
                    assert isinstance(heard, m.Goodbye) or heard.refusal
            for n in range(1, 21):
                await writer.publish({"n": n}, b"%d" % n)
            found = [await asyncio.wait_for(anext(told), 20) for _ in range(21)]
            assert [one.payload for one in found if isinstance(one, Delivery)] == [
                b"%d" % n for n in range(21)
            ]

    asyncio.run(work())


def test_a_router_whose_token_may_not_route_is_told_what_to_write(
    tmp_path: Path, root: Process
) -> None:
    edge = Process(tmp_path, "edge", EDGE.format(port=root.port, token="reads").replace(
        'name = "edge"', 'name = "reader"'))  # fmt: skip
    try:
        for _ in range(200):
            if "may not route" in edge.log():
                break
            edge.wait(0.05)
    finally:
        edge.stop()
    log = Path(tmp_path / "edge.log").read_text()
    assert log.count("may not route") == 1
    assert (
        "reader: the router above: 'reader' is a router, but its token may not route; expected "
        '{name = "reader", may = ["route"]} among the tokens here'
    ) in log


def test_a_guest_that_takes_all_it_can_leaves_room(tmp_path: Path, root: Process) -> None:
    """Of 200 places one token gets 100; names of their own and a router come in all the same."""

    async def work() -> None:
        taken = []
        reason = ""
        try:
            for number in range(250):
                one = raw(root.port, m.Hello(f"guest-{number}", token="guest"))
                taken.append(one)
                found = await (await one.__aenter__()).hear()
                if isinstance(found, m.Goodbye):
                    reason = found.reason
                    break
            assert reason == "there are 100 guests with this token, expected at most 100"
            async with raw(root.port, m.Hello("another", token="other")) as other:
                assert isinstance(await other.hear(), m.Welcome)
            await _deliver(root.port, 20)
            edge = Process(tmp_path, "edge", EDGE.format(port=root.port, token="ours"))
            try:
                at = f"tidings://127.0.0.1:{edge.port}"
                async with connect(at) as agent:
                    await asyncio.wait_for(agent.publish({"n": 1}, b""), 20)
            finally:
                edge.stop()
        finally:
            for one in taken:
                await one.__aexit__(None, None, None)

    asyncio.run(work())
