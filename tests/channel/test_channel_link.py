"""The link of a pipeline to a running rendezvous point: through restarts, and what is refused."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.broker.certificates import Authority
from tests.broker.networks import BRIEF
from tests.broker.parts import make_part
from tests.decoding import decode_all
from tests.waiting import eventually

from tidings import Delivery, Interrupted, Resumed
from tidings.broker import Address, Door, RootNode, RouterNode
from tidings.broker.admission.permissions import TokenRights
from tidings.channel import Changes, ChannelLink, NodeChange, Outdated, Part, owner_link as module
from tidings.filters import Attributes
from tidings.model import EnvironmentProblem, TidingsError
from tidings.network import Refusal, TimedOut, connect_blocking, server_context
from tidings.routing.protocol import frames, messages as m
from tidings.routing.root import node_history
from tidings.studies.host.ports import free_ports

TOKENS = {
    "of pipelines": TokenRights("spark", frozenset({"preprocess"})),
    "of guests": "*",
    "of routers": TokenRights("edge", frozenset({"route"})),
}


class Owner:
    """A rendezvous point in a thread of its own, that can be stopped and started."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (self.port,) = free_ports(1)
        self.door: dict[str, Any] = {}
        self.attributes: Attributes | None = None
        self.node: RootNode | None = None
        self.others: list[RouterNode] = []
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, name="owner")
        self.thread.start()

    @property
    def address(self) -> str:
        return f"tidings://127.0.0.1:{self.port}"

    def run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(60)

    def start(self) -> None:
        async def work() -> None:
            door = Door(Address("127.0.0.1", self.port), **self.door)
            journal = self.folder / "journal"
            self.node = RootNode("root", journal, door, attributes=self.attributes, times=BRIEF)
            await self.node.start()

        self.run(work())

    def start_router(self, name: str, **more: Any) -> int:
        async def work() -> int:
            above = Address("127.0.0.1", self.port)
            self.others.append(RouterNode(name, above, Door(), times=BRIEF, **more))
            await self.others[-1].start()
            return self.others[-1].port

        return int(self.run(work()))

    def stop(self) -> None:
        if self.node is not None:
            self.run(self.node.stop())
            self.node = None

    def end(self) -> None:
        for one in self.others:
            self.run(one.stop())
        self.stop()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()


@pytest.fixture
def owner(tmp_path: Path) -> Iterator[Owner]:
    one = Owner(tmp_path)
    yield one
    one.end()


def parts_of(known: Changes, count: int, rows: int, *, batch: int = 1) -> list[Part]:
    (node,) = [one.node for one in known.changes]
    found = []
    for number in range(count):
        some = [((node,), b"%d.%d" % (number, at)) for at in range(rows)]
        last = number + 1 == count
        found.append(make_part("out", (batch, number), some, known.life, known.version, last=last))
    return found


def payloads(told: Any, count: int) -> list[bytes]:
    found: list[bytes] = []
    while len(found) < count:
        one = told.next(30)
        if not isinstance(one, Interrupted | Resumed):
            found.append(one.payload)
    return found


def test_what_a_channel_tells(owner: Owner) -> None:
    owner.attributes = Attributes({"price": "double", "user.city": "string"}, extra="refuse")
    owner.door["channel"] = "quotes"
    owner.start()
    address = f"{owner.address}/quotes"
    with ChannelLink(address) as link, connect_blocking(address, times=BRIEF) as agent:
        described = link.describe()
        assert (described.name, described.extra) == ("quotes", "refuse")
        types = {"subject": "string", "price": "double", "user": "struct<city: string>"}
        assert described.attributes == types
        assert Attributes(types).tree == owner.attributes.tree
        before = link.changes()
        assert (before.whole, before.changes, before.life) == (True, (), described.life)
        with agent.subscribe("price > 5"):
            news = link.changes(before.version, before.life)
            (change,) = news.changes
            assert change == NodeChange(news.version, change.node, "price > 5")
            assert not news.whole
            assert link.changes(news.version, news.life).changes == ()
            assert link.changes(news.version, news.life + 1).whole


def test_what_is_handed_over_reaches_agents(owner: Owner) -> None:
    owner.start()
    edge = owner.start_router("edge")
    with (
        connect_blocking(f"tidings://127.0.0.1:{edge}", times=BRIEF) as agent,
        agent.subscribe("n > 5") as told,
        ChannelLink(owner.address) as link,
    ):
        parts = parts_of(link.changes(), 20, 300)
        assert link.hand_over(iter(parts)) == 20
        expected = [b"%d.%d" % (part, row) for part in range(20) for row in range(300)]
        assert payloads(told, 6000) == expected
        assert link.hand_over(parts) == 20, "they were taken before"
        assert link.hand_over([]) == 0
        assert not isinstance(told.next(0.5), Delivery)


def test_the_owner_is_started_again(owner: Owner) -> None:
    """In the middle, and between calls: the numbers go on, and so does the link."""
    owner.start()
    with (
        connect_blocking(owner.address, times=BRIEF) as agent,
        agent.subscribe("n > 5") as told,
        ChannelLink(owner.address) as link,
    ):
        known = link.changes()
        parts = parts_of(known, 40, 50)
        starting = threading.Thread(target=owner.start)

        def some() -> Iterator[Part]:
            for number, part in enumerate(parts):
                if number == 13:
                    owner.stop()
                    starting.start()
                yield part

        assert link.hand_over(some()) == 40
        starting.join()
        expected = [b"%d.%d" % (part, row) for part in range(40) for row in range(50)]
        assert sorted(payloads(told, 2000)) == sorted(expected)
        assert not isinstance(told.next(0.5), Delivery)
        owner.stop()
        owner.start()
        again = link.changes(known.version, known.life)
        assert (again.life, again.whole, again.changes) == (known.life, False, ())
        assert link.describe().life == known.life


def test_parts_that_are_too_old(owner: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    owner.start()
    with connect_blocking(owner.address, times=BRIEF) as agent, ChannelLink(owner.address) as link:
        with agent.subscribe("n > 5"):
            parts = parts_of(link.changes(), 2, 3)
            monkeypatch.setattr(node_history, "MOST_AROUND", 0)
        eventually(lambda: not link.changes().changes)  # nobody wants the node any more
        with pytest.raises(Outdated, match="is unknown or too old") as found:
            link.hand_over(parts)
        assert found.value.version == link.changes().version


def test_nobody_is_there() -> None:
    (port,) = free_ports(1)
    link = ChannelLink(f"tidings://127.0.0.1:{port}", timeout=0.5)
    began = time.monotonic()
    with pytest.raises(TimedOut, match=r"no answer from the owner of the channel for 0\.5 seconds"):
        link.changes()
    assert time.monotonic() - began < 20
    with pytest.raises(EnvironmentProblem, match="expected one such as"):
        ChannelLink("localhost")


def test_whoever_is_there_does_not_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        link = ChannelLink(f"tidings://127.0.0.1:{server.getsockname()[1]}", timeout=0.5)
        with pytest.raises(TimedOut, match="does not answer"):
            link.describe()


def test_whoever_is_there_says_other_things(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is asked again, as it ignores those who ask too much; in the end it is given up."""
    monkeypatch.setattr(module, "SIGN", 0.1)
    heard: list[m.Message] = []
    over = threading.Event()

    def serve(server: socket.socket) -> None:
        other, _ = server.accept()
        with other:
            other.sendall(frames.encode(m.Welcome("root")))
            other.settimeout(0.02)
            while not over.is_set():
                with contextlib.suppress(OSError):
                    other.sendall(frames.encode(m.Beat(1, 1, {}, m.Digest(), 0)))
                    heard.extend(decode_all(other.recv(1 << 16)))

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve, args=(server,))
        thread.start()
        link = ChannelLink(f"tidings://127.0.0.1:{server.getsockname()[1]}", timeout=5.0)
        try:
            with pytest.raises(TimedOut, match="for 5 seconds: it does not answer"):
                link.changes()
        finally:
            over.set()
            thread.join()
    assert sum(isinstance(one, m.Follow) for one in heard) > 2


def test_another_version_of_the_protocol() -> None:
    """The other end refuses our frame in its own version, and that is one sentence here."""

    def serve(server: socket.socket) -> None:
        other, _ = server.accept()
        with other:
            other.recv(1000)
            goodbye = bytearray(frames.encode(m.Goodbye("found a frame of version 3")))
            goodbye[5] = 2
            other.sendall(goodbye)

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve, args=(server,))
        thread.start()
        link = ChannelLink(f"tidings://127.0.0.1:{server.getsockname()[1]}")
        with pytest.raises(TidingsError, match="found version 2 of the protocol, expected version"):
            link.describe()
        thread.join()


def test_who_may(owner: Owner) -> None:
    owner.door["tokens"] = TOKENS
    owner.start()
    edge = owner.start_router("edge", token="of routers")
    good = ChannelLink(owner.address, token="of pipelines", name="spark")
    assert good.describe().name == ""
    with pytest.raises(Refusal, match="'guest' may not preprocess here; expected a token with"):
        ChannelLink(owner.address, token="of guests", name="guest").describe()
    with pytest.raises(Refusal, match="'guest' may not preprocess here"):
        ChannelLink(owner.address, token="of guests", name="guest").changes()
    part = make_part("out", (1, 0), [((1,), b"x")], 1, 1)
    with pytest.raises(Refusal, match="'guest' may not preprocess here"):
        ChannelLink(owner.address, token="of guests", name="guest").hand_over([part])
    with pytest.raises(Refusal, match="'edge' may not preprocess here"):  # `route` is not enough
        ChannelLink(owner.address, token="of routers", name="edge").describe()
    with pytest.raises(Refusal, match="the token is not known here"):
        ChannelLink(owner.address, token="guessed").describe()
    with pytest.raises(Refusal, match="bound to a name other than"):
        ChannelLink(owner.address, token="of pipelines", name="other").describe()
    with pytest.raises(Refusal, match="'edge' is a router, expected the rendezvous point"):
        ChannelLink(f"tidings://127.0.0.1:{edge}").hand_over([part])
    with pytest.raises(Refusal, match="found the channel 'other', expected ''"):
        ChannelLink(f"{owner.address}/other", token="of pipelines", name="spark").describe()
    good.close()


def test_over_tls(owner: Owner, tmp_path: Path) -> None:
    authority, other = Authority(tmp_path, "ours"), Authority(tmp_path, "others")
    files = authority.sign("root")
    owner.door["tls"] = server_context(files.certificate, files.key)
    owner.start()
    address = f"tidings+tls://127.0.0.1:{owner.port}"
    with (
        ChannelLink(address, authorities=str(authority.path)) as link,
        connect_blocking(address, authorities=authority.path, times=BRIEF) as agent,
        agent.subscribe("n > 5") as told,
    ):
        big = make_part("out", (0, 0), [((1,), os.urandom(3 << 20))], *_known(link), last=True)
        assert link.hand_over([big]) == 1
        assert payloads(told, 1) == [big.payloads]
    link = ChannelLink(address, authorities=str(other.path), timeout=5.0)
    with pytest.raises(TimedOut, match="its certificate is not trusted"):
        link.describe()


def _known(link: ChannelLink) -> tuple[int, int]:
    known = link.changes()
    return known.life, known.version


def test_silence_does_not_end_it(owner: Owner) -> None:
    """A link that waits for more parts than `expire` is dropped, and comes back by itself."""
    owner.start()
    with (
        connect_blocking(owner.address, times=BRIEF) as agent,
        agent.subscribe("n > 5") as told,
        ChannelLink(owner.address) as link,
    ):
        first, second = parts_of(link.changes(), 2, 3)
        assert owner.node is not None

        def some() -> Iterator[Part]:
            yield first
            names = [name for name in owner.node.links if str(name).startswith("pipeline")]  # type: ignore[union-attr]
            eventually(lambda: not any(name in owner.node.links for name in names))  # type: ignore[union-attr]
            yield second

        assert link.hand_over(some()) == 2
        assert payloads(told, 6) == [b"0.0", b"0.1", b"0.2", b"1.0", b"1.1", b"1.2"]
