"""Agents whose notifications bypass the tree, over real connections and as real processes: whatever
happens to either link, everything comes once and in order."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import asdict
from tests.broker.networks import BRIEF, at, payloads, running, stopped
from tests.broker.processes import Process
from tests.waiting import PATIENCE, until

from tidings.broker import Address, Direct, Door, RootNode, RouterNode
from tidings.broker.admission.direct_tickets import DirectTicket, DirectTickets
from tidings.broker.admission.permissions import TokenRights, Tokens
from tidings.network import Agent, Refusal, connect
from tidings.network.agents import direct_link
from tidings.routing.clients import Delivery, Interrupted
from tidings.routing.protocol import Times, messages as m
from tidings.routing.root import offers
from tidings.studies.host.ports import free_ports

TOKENS: Tokens = {
    "eu": TokenRights("berlin", within="region = 'EU'"),
    "writes": "writer",
    "edges": TokenRights("r0", frozenset({"route"})),
    "guests": "*",
}


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Agents apply often."""
    monkeypatch.setattr(direct_link, "SETTLED", 0.1)
    monkeypatch.setattr(direct_link, "PAUSES", (0.5, 1.0))
    monkeypatch.setattr(offers, "SECONDS", 4)  # renewed after a quarter of this


@asynccontextmanager
async def a_network(
    folder: Path, direct: Direct, tokens: Tokens | None = None, routers: int = 1
) -> AsyncIterator[tuple[RootNode, list[RouterNode]]]:
    root = RootNode("root", folder / "journal.db", Door(tokens=tokens), times=BRIEF, direct=direct)
    await root.start()
    chain: list[RouterNode] = []
    for number in range(routers):
        above = Address("127.0.0.1", chain[-1].port if chain else root.port)
        door = Door(tokens=tokens)
        chain.append(RouterNode(f"r{number}", above, door, times=BRIEF, token="edges"))
        await chain[-1].start()
    try:
        yield root, chain
    finally:
        await stopped((root, chain))


async def is_direct(agent: Agent, yes: bool = True) -> None:
    await until(lambda: bool(agent.state.direct) is yes)


def test_few_bypass_the_tree_and_many_do_not(tmp_path: Path) -> None:
    """The routers forward nothing while one is interested. With three more at the same router, all
    are back in the tree, and nothing was lost or doubled on the way."""

    async def work() -> None:
        async with (
            a_network(tmp_path, Direct(2), routers=2) as (root, (r0, r1)),
            connect(at(r1), times=BRIEF) as reader,
            connect(at(r1), times=BRIEF, direct=False) as other,
            connect(at(root), times=BRIEF) as writer,
            reader.subscribe("price > 90") as told,
        ):
            await is_direct(reader)
            assert reader.state.direct == f"127.0.0.1:{root.port}"
            before = r0.passed_on, r1.passed_on
            for number in range(50):
                await writer.publish({"price": 91.0}, b"%d" % number)
            assert await payloads(told, 50) == [b"%d" % number for number in range(50)]
            assert (r0.passed_on, r1.passed_on) == before
            shown = [link for link in root.status(root.now).links if link.kind == "direct"]
            assert [link.nodes for link in shown] == [1]
            async with (
                other.subscribe("price > 80"),
                connect(at(r0), times=BRIEF, direct=False) as third,
                third.subscribe("price > 90"),
            ):
                publishing = asyncio.create_task(_publish(writer, 50, 150))
                await is_direct(reader, False)
                await publishing
                await is_direct(reader, False)
                assert await payloads(told, 100) == [b"%d" % number for number in range(50, 150)]
            await is_direct(reader)
            await writer.publish({"price": 95.0}, b"again")
            assert await payloads(told, 1) == [b"again"]

    running(work)


async def _publish(writer: Agent, first: int, last: int, pause: float = 0.01) -> None:
    for number in range(first, last):
        await writer.publish({"price": 91.0}, b"%d" % number)
        await asyncio.sleep(pause)


@pytest.mark.parametrize("direct", [Direct(4, "127.0.0.1:1"), Direct(0), Direct(4)])
def test_without_a_second_link_nothing_changes(tmp_path: Path, direct: Direct) -> None:
    """Because of a firewall, because none is offered, or because the agent wants none."""

    async def work() -> None:
        wants = direct.most == 0 or bool(direct.address)
        async with (
            a_network(tmp_path, direct) as (_, (r0,)),
            connect(at(r0), times=BRIEF, direct=wants) as reader,
            reader.subscribe("price > 90") as told,
        ):
            for number in range(30):
                await reader.publish({"price": 91.0}, b"%d" % number)
                await asyncio.sleep(0.05)
                assert not reader.state.direct
            assert await payloads(told, 30) == [b"%d" % number for number in range(30)]

    running(work)


def test_rights_are_those_of_the_tree(tmp_path: Path) -> None:
    """A limited agent bypasses the tree too, and gets nothing else there. A guest does as well."""

    async def work() -> None:
        async with (
            a_network(tmp_path, Direct(4), TOKENS) as (root, (r0,)),
            connect(at(r0), name="berlin", token="eu", times=BRIEF) as berlin,
            connect(at(r0), name="guest", token="guests", times=BRIEF) as guest,
            connect(at(root), name="writer", token="writes", times=BRIEF) as writer,
            berlin.subscribe("price > 90 AND region = 'EU'") as told,
            guest.subscribe("price > 95") as seen,
        ):
            await is_direct(berlin)
            await is_direct(guest)
            with pytest.raises(Refusal, match=r"write: \(price > 5\) AND"):
                async with berlin.subscribe("price > 5"):
                    pass
            with pytest.raises(Refusal, match="expected a node of this channel"):
                async with berlin.subscribe(node=seen.node):
                    pass
            async with berlin.subscribe("price < 5 AND region = 'EU'") as more:
                await writer.publish({"price": 99.0, "region": "US"}, b"us")
                await writer.publish({"price": 99.0, "region": "EU"}, b"eu")
                await writer.publish({"price": 1.0, "region": "EU"}, b"cheap")
                assert await payloads(told, 1) == [b"eu"]
                assert await payloads(more, 1) == [b"cheap"]
                assert await payloads(seen, 2) == [b"us", b"eu"]
            # it publishes through the tree, under its own name
            await berlin.publish({"price": 97.0, "region": "EU"}, b"mine")
            assert await payloads(told, 1) == [b"mine"]

    running(work)


def test_tickets_that_are_not_in_order(tmp_path: Path) -> None:
    """Each is refused in a sentence: forged, for somebody else, too late, or of another life."""
    tickets = DirectTickets()
    text = tickets.issue(DirectTicket("alice", "r0/alice", "alice", ("a = 1",), 10.0))
    assert tickets.read(text, "alice", 9.0) == DirectTicket(
        "alice", "r0/alice", "alice", ("a = 1",), 10.0
    )
    assert "is not for 'bob'" in str(tickets.read(text, "bob", 9.0))
    assert "has expired" in str(tickets.read(text, "alice", 10.0))
    body, _, mac = text.partition(".")
    for wrong in (
        body,
        f"{body}.{mac[:-1]}0",
        f"{body}x.{mac}",
        "direct:",
        "direct:ü.ü",
        text[:-1],
    ):
        if wrong != text:
            assert "is not known here" in str(tickets.read(wrong, "alice", 9.0))
    assert "is not known here" in str(DirectTickets().read(text, "alice", 9.0))

    async def work() -> None:
        async with a_network(tmp_path, Direct(4)) as (root, _):
            with pytest.raises(Refusal, match="the ticket for a direct link is not known here"):
                async with connect(at(root), name="alice", token=text, times=BRIEF):
                    pass
            ticket = DirectTicket("r9", "r0/r9", "r9", (), root.now + 100)
            good = root.connections.tickets.issue(ticket)
            for hello in (
                m.Hello("r9", token=good, routes=True),
                m.Hello("r9", "", good, opens=True),
            ):
                found = root.connections._admit(hello, frozenset())
                assert found == (
                    "found a ticket for a direct link, which is for agents, expected a token"
                )
            async with connect(at(root), name="r9", token=good, times=BRIEF) as alone:
                with pytest.raises(Refusal, match="may not publish here"):
                    await alone.publish({"price": 1.0})

    running(work)


def test_a_ticket_that_is_not_renewed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rendezvous point ends the link, and everything goes on through the tree."""

    async def work() -> None:
        async with (
            a_network(tmp_path, Direct(4)) as (root, (r0,)),
            connect(at(r0), times=BRIEF) as reader,
            reader.subscribe("price > 90") as told,
        ):
            await is_direct(reader)
            monkeypatch.setattr(root.connections, "renew_ticket", lambda *_: "")
            monkeypatch.setattr(root, "_direct", Direct(4, "127.0.0.1:1"))
            publishing = asyncio.create_task(_publish(reader, 0, 100))
            root.connections.end_tickets(root.now + 1000)
            await is_direct(reader, False)
            await publishing
            assert await payloads(told, 100) == [b"%d" % number for number in range(100)]

    running(work)


def _is_above(proxy: Proxy, made: int) -> bool:
    return proxy.count > made


def test_a_named_subscription_bypasses_the_tree(tmp_path: Path) -> None:
    """What it confirms over the second link is confirmed, whichever way it comes back."""

    async def work() -> None:
        async with a_network(tmp_path, Direct(4), TOKENS) as (_, (r0,)):
            for direct, first in ((True, 0), (False, 4), (True, 8)):
                async with (
                    connect(
                        at(r0), name="berlin", token="eu", times=BRIEF, direct=direct
                    ) as berlin,
                    berlin.subscribe("region = 'EU'", name="bills") as told,
                ):
                    await is_direct(berlin, direct)
                    for number in range(first + 1 if first else 0, first + 5):
                        await berlin.publish({"region": "EU"}, b"%d" % number)
                    found: list[Delivery] = []
                    while len(found) < 5:  # its links may be interrupted on a busy machine
                        one = await told.next(PATIENCE)
                        assert one is not None
                        found += [one] if isinstance(one, Delivery) else []
                    expected = [b"%d" % number for number in range(first, first + 5)]
                    assert [one.payload for one in found] == expected
                    await told.confirm(found[3])  # the last one comes again

    running(work)


class Proxy:
    """Passes bytes on to a port, until it is cut."""

    def __init__(self, port: int = 0) -> None:
        self.to = port
        self.port = 0
        self.count = 0
        self._writers: list[asyncio.StreamWriter] = []

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.count += 1
        back, forth = await asyncio.open_connection("127.0.0.1", self.to)
        self._writers += [writer, forth]
        await asyncio.gather(_pump(reader, forth), _pump(back, writer))

    def cut(self) -> None:
        """End all connections."""
        for one in self._writers:
            one.transport.abort()
        self._writers.clear()

    def stop(self) -> None:
        self.cut()
        self._server.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    writer.close()


SLOWER = Times(beat=0.2, resubscribe=0.4, retry=0.4, silent=3.0, expire=6.0, request=5.0)
TIMES = "[times]\n" + "".join(f"{name} = {value}\n" for name, value in asdict(SLOWER).items())


def test_kills_of_either_way(tmp_path: Path) -> None:
    """As processes: the router dies while the second link lives, the second link is cut while the
    router lives, and the rendezvous point dies, which ends both. Publications go in at another
    router all the time."""

    async def work() -> None:
        proxy = Proxy()
        await proxy.start()
        direct = f'[direct]\nmost = 4\naddress = "127.0.0.1:{proxy.port}"\n'
        head = 'name = "root"\njournal = "journal.db"\nlisten = "127.0.0.1:{}"\n'
        names = ("root", "edge", "other")
        ports = dict(zip(names, free_ports(3), strict=True))
        proxy.to = port = ports["root"]
        above = f'upstream = "127.0.0.1:{port}"\n'
        nodes = {"root": Process(tmp_path, "root", head.format(port) + direct + TIMES)}
        for name in ("edge", "other"):
            listen = f'name = "{name}"\nlisten = "127.0.0.1:{ports[name]}"\n'
            nodes[name] = Process(tmp_path, name, listen + above + TIMES)

        def again(name: str) -> None:
            nodes[name].signal(signal.SIGKILL)
            nodes[name].stop()
            more = above if name != "root" else ""
            begin = head.format(port) + direct if name == "root" else (
                f'name = "{name}"\nlisten = "127.0.0.1:{ports[name]}"\n'
            )  # fmt: skip
            nodes[name] = Process(tmp_path, f"{name}", begin + more + TIMES)

        try:
            async with (
                connect(f"tidings://127.0.0.1:{ports['edge']}", times=SLOWER) as reader,
                connect(f"tidings://127.0.0.1:{ports['other']}", times=SLOWER) as writer,
                reader.subscribe("price > 90") as told,
            ):
                published = 0
                stop = asyncio.Event()

                async def publish() -> None:
                    nonlocal published
                    while not stop.is_set():
                        await writer.publish({"price": 91.0}, b"%d" % published)
                        published += 1
                        await asyncio.sleep(0.005)

                publishing = asyncio.create_task(publish())
                await is_direct(reader)
                # the tree's router dies: what comes over the second link goes on
                nodes["edge"].signal(signal.SIGKILL)
                nodes["edge"].wait(10)
                begun = published
                await until(lambda: published > begun + 100)
                assert reader.state.direct
                assert not reader.state.linked
                await asyncio.to_thread(again, "edge")
                await until(lambda: reader.state.linked)
                # the second link is cut, three times
                for _ in range(3):
                    made = proxy.count
                    proxy.cut()
                    await until(partial(_is_above, proxy, made))
                    await is_direct(reader)
                made = proxy.count
                await asyncio.to_thread(again, "root")
                await until(partial(_is_above, proxy, made))
                await is_direct(reader)
                begun = published
                await until(lambda: published > begun + 50)
                stop.set()
                await publishing
                found: list[Delivery] = []
                others: list[object] = []
                while len(found) < published:
                    one = await told.next(120)
                    assert one is not None, (len(found), published, others)
                    (found if isinstance(one, Delivery) else others).append(one)  # type: ignore[arg-type]
                assert [one.payload for one in found] == [b"%d" % n for n in range(published)]
                serials = [one.serial for one in found]
                assert serials == sorted(set(serials))
                assert not [one for one in others if not hasattr(one, "seconds")
                            and not isinstance(one, Interrupted)]  # fmt: skip
                assert not isinstance(await told.next(0.5), Delivery)
        finally:
            proxy.stop()
            for node in nodes.values():
                node.stop()

    running(work)
