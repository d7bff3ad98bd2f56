"""What tests within one process show, once more with real processes: two rendezvous points and a
router, which all tests of this file share. Some are killed, and start again at the same port."""

from __future__ import annotations

import asyncio
import datetime
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from tests.broker.certificates import Authority
from tests.broker.networks import payloads, running
from tests.broker.processes import Process, write_secret
from tests.waiting import PATIENCE, until

from tidings import Agent, Break, Delivery, Outdated, Refusal, TimedOut, connect
from tidings.network.agent import LARGEST
from tidings.network.agents import direct_link
from tidings.routing.clients import Interrupted, Resumed
from tidings.routing.protocol import About, Piece, Times
from tidings.studies.host.ports import free_ports

TIMES = Times(beat=0.2, resubscribe=0.4, retry=0.4, silent=10.0, expire=30.0, request=5.0)
_TIMES = "[times]\n" + "".join(f"{k} = {v}\n" for k, v in msgspec.structs.asdict(TIMES).items())
ALL = 'may = ["publish", "subscribe", "preprocess"], channels = ["*"]'
TOKENS = {
    "reads": f'{{name = "reader", {ALL}}}',
    "writes": f'{{name = "writer", {ALL}}}',
    "others": f'{{name = "other", {ALL}}}',
    "eu": "{name = \"berlin\", within = \"region = 'EU'\"}",
    "edges": '{name = "edge", may = ["route", "publish", "subscribe", "preprocess"], '
             'channels = ["*"]}',
}  # fmt: skip
FX = 'name = "fx"\nchannel = "fx"\njournal = "fx"\nlisten = "127.0.0.1:{}"\n'
TEA = 'name = "tea"\nchannel = "tea"\njournal = "tea"\nlisten = "127.0.0.1:{}"\n'
EDGE = """name = "edge"
channel = "fx"
listen = "127.0.0.1:{}"
token = "edges"
upstream = ["127.0.0.1:{}", "127.0.0.1:{}"]
"""
LIMITS = "[limits]\ntag_changes = 3\n"
ROUTES = """[upstreams]
west = "127.0.0.1:{}"
[channels]
tea = {{upstream = "west", limits = {{nodes = 3}}}}
"""
READER = """
import sys, tidings
with tidings.connect_blocking(sys.argv[1], name="reader", token="reads") as agent:
    with agent.subscribe("word = 'big'", name="mine") as told:
        print("there", flush=True)
        for one in told:
            if isinstance(one, tidings.Delivery):
                told.confirm(one)
                print(len(one.payload), one.payload[:20].decode(), flush=True)
            elif not isinstance(one, tidings.Interrupted | tidings.Resumed):
                print(one, flush=True)
"""


class Tree:
    """The processes, by name."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        nobody, self.fx, self.tea, self.edge = free_ports(4)
        self.heads = {
            "fx": FX.format(self.fx),
            "tea": TEA.format(self.tea),
            "edge": EDGE.format(self.edge, nobody, self.fx),  # nobody listens at the first one
        }
        self.tails = {"fx": LIMITS, "tea": "", "edge": ROUTES.format(self.tea)}
        self.nodes = {name: Process(folder, name, self.text(name)) for name in self.heads}

    def text(self, name: str, **other: str) -> str:
        tokens = "".join(f"{token} = {who}\n" for token, who in {**TOKENS, **other}.items())
        return f"{self.heads[name]}[tokens]\n{tokens}{self.tails[name]}{_TIMES}"

    def kill(self, name: str) -> None:
        self.nodes[name].signal(signal.SIGKILL)
        self.nodes[name].stop()

    def start(self, name: str) -> None:
        self.nodes[name] = Process(self.folder, name, self.text(name))

    def renew(self, name: str, **tokens: str) -> None:
        """Other tokens, while a node runs."""
        write_secret(self.folder / f"{name}.toml", self.text(name, **tokens))
        self.nodes[name].signal(signal.SIGHUP)

    def address(self, at: str = "edge") -> str:
        return f"tidings://127.0.0.1:{getattr(self, at)}/{'tea' if at == 'tea' else 'fx'}"

    def connect(
        self, name: str, token: str, at: str = "edge", **how: Any
    ) -> AbstractAsyncContextManager[Agent]:
        return connect(self.address(at), name=name, token=token, times=TIMES, **how)

    def end(self) -> None:
        for node in self.nodes.values():
            node.stop()


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tree]:
    found = Tree(tmp_path_factory.mktemp("tree"))
    yield found
    found.end()


# -- names and pieces ------------------------------------------------------------------------------


class Reader:
    """A process that confirms what it is told, and then prints it."""

    def __init__(self, tree: Tree) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", READER, tree.address()], stdout=subprocess.PIPE, text=True
        )
        assert self.line() == "there"

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


def test_a_name_goes_on_whoever_is_killed(tree: Tree) -> None:
    """The reader, the root and the router are killed between the pieces of a payload."""

    async def work() -> None:
        reader = await asyncio.to_thread(Reader, tree)
        async with (
            tree.connect("writer", "writes") as writer,
            tree.connect("other", "others", "fx") as other,
        ):
            parts = [b"first", b" second", b" third"]

            async def publish_part(at: int) -> None:
                about = About(time=1, piece=Piece(1, at, len(parts)))
                await writer._publish(b'{"word": "big"}', parts[at], about, b"")

            try:
                await publish_part(0)
                await other.publish({"word": "big"}, b"between")
                assert await asyncio.to_thread(reader.line) == "7 between"
                reader.kill()
                tree.kill("fx")
                await asyncio.to_thread(tree.start, "fx")
                await publish_part(1)
                reader = await asyncio.to_thread(Reader, tree)
                await other.publish({"word": "big"}, b"again")
                assert await asyncio.to_thread(reader.line) == "5 again"
                reader.kill()
                tree.kill("edge")
                await asyncio.to_thread(tree.start, "edge")
                await publish_part(2)
                await other.publish({"word": "big"}, b"after")
                reader = await asyncio.to_thread(Reader, tree)
                large = random.Random(1).randbytes(LARGEST // 2).hex().encode() + b"0" * 16
                await other.publish({"word": "big"}, large)  # really in pieces
                lines = [await asyncio.to_thread(reader.line)]
                while not lines[-1].startswith(f"{len(large)} "):
                    lines.append(await asyncio.to_thread(reader.line))
                assert lines[:-1] == ["18 first second third", "5 after"]
                assert large.startswith(lines[-1].split()[1].encode())
            finally:
                reader.kill()

    running(work)


# -- fast, unordered, dropped ----------------------------------------------------------------------


def command(tree: Tree, *arguments: str) -> subprocess.Popen[str]:
    """`tidings subscribe`, once it has subscribed."""
    found = subprocess.Popen(
        [sys.executable, "-m", "tidings", "subscribe", *arguments, "--router", tree.address(),
         "--name", "reader", "--token", "reads"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert found.stderr is not None
    while "subscribed to" not in (line := found.stderr.readline()):
        assert line, "it ended"
    return found


def test_fast_unordered_and_dropped(tree: Tree) -> None:
    async def work() -> None:
        one = await asyncio.to_thread(
            command, tree, "word = 'fast'", "--fast", "--order", "none", "--drop-after", "0.5"
        )
        try:
            async with (
                tree.connect("writer", "writes") as writer,
                tree.connect("other", "others", "fx") as other,
                other.subscribe("word = 'fast'", fast=True) as told,
            ):
                assert await writer.publish({"word": "fast"}, b"kept") == 1
                assert await writer.publish({"word": "fast"}, b"fast", fast=True) == 0
                found = [await told.next(PATIENCE) for _ in range(2)]
                serials = {one.payload: one.serial for one in found if isinstance(one, Delivery)}
                assert serials.pop(b"kept") > 0
                assert serials == {b"fast": 0}
            assert one.stdout is not None
            lines = {await asyncio.to_thread(one.stdout.readline) for _ in range(2)}
            assert lines == {"kept\n", "fast\n"}
            tree.kill("edge")
            _, said = await asyncio.to_thread(one.communicate, timeout=PATIENCE)
            assert one.returncode == 0
            assert "the router is gone" in said
            assert "the subscription was dropped after an interruption of more than 0.5" in said
        finally:
            one.kill()
            await asyncio.to_thread(tree.start, "edge")

    running(work)


# -- rights ----------------------------------------------------------------------------------------


async def read_to_the_end(told: Any) -> None:
    while True:
        one = await asyncio.wait_for(anext(told), PATIENCE)
        assert isinstance(one, Break | Interrupted | Resumed), one


def test_rights_that_change_at_the_router_and_at_the_root(tree: Tree) -> None:
    async def work() -> None:
        try:
            async with (
                tree.connect("berlin", "eu") as berlin,
                tree.connect("writer", "writes") as writer,
                berlin.subscribe("region = 'EU'") as told,
            ):
                with pytest.raises(Refusal, match=r"write: \(price > 5\) AND \(region = 'EU'\)"):
                    await berlin.subscribe("price > 5").__aenter__()
                for region in ("US", "EU"):
                    await writer.publish({"region": region}, region.encode())
                assert await payloads(told, 1) == [b"EU"]
                city = "{name = \"berlin\", within = \"region = 'EU' AND city = 'B'\"}"
                tree.renew("edge", eu=city)
                with pytest.raises(Refusal, match="AND city = 'B'"):
                    await read_to_the_end(told)
            async with (
                tree.connect("reader", "reads") as reader,
                reader.subscribe("price > 5") as told,
            ):
                limited = TOKENS["edges"].replace("may", "within = \"region = 'EU'\", may", 1)
                tree.renew("fx", edges=limited)  # everybody behind the router
                with pytest.raises(Refusal, match=r"write: \(price > 5\) AND \(region = 'EU'\)"):
                    await read_to_the_end(told)
        finally:
            tree.renew("edge")
            tree.renew("fx")

    running(work)


# -- headers, nodes and formats --------------------------------------------------------------------


def test_headers_in_advance_and_nodes_by_number(tree: Tree) -> None:
    async def work() -> None:
        async with (
            tree.connect("writer", "writes", tag="local") as writer,
            tree.connect("reader", "reads") as reader,
            reader.subscribe("n > 3") as told,
        ):
            await until(lambda: writer.view.version >= told.node)
            header = await writer.header({"n": 5})
            await writer.publish(payload=b"a", header=header)  # without attributes
            others = [reader.subscribe(f"word = '{number}'") for number in range(5)]
            for one in others:
                await one.__aenter__()
            with pytest.raises(Outdated, match="the nodes changed more than 3 times") as problem:
                await writer.publish(payload=b"b", header=header)
            await writer.publish({"n": 5}, b"c", header=header)
            await until(lambda: writer.view.version >= problem.value.version)
            await writer.publish(payload=b"d", header=await writer.header({"n": 5}))
            found = [await told.next(PATIENCE) for _ in range(3)]
            told_of = {one.payload: one.attributes for one in found if isinstance(one, Delivery)}
            assert told_of == {b"a": None, b"c": {"n": 5}, b"d": None}
            async with writer.subscribe(node=told.node) as same:
                await writer.publish({"n": 4}, b"e")
                assert await payloads(same, 1) == [b"e"]
            with pytest.raises(Refusal, match="found the node '12345', expected a node of this"):
                await writer.subscribe(node=12345).__aenter__()

    running(work)


def test_every_format(tree: Tree) -> None:
    event = {"kind": "ale", "price": 95}
    cloud = {"specversion": "1.0", "id": "7", "source": "/", "type": "sold", **event,
             "data": {"litres": 3}}  # fmt: skip
    table = pa.table({"kind": ["ale", None], "price": [91, 92],
                      "at": [datetime.date(2026, 1, 1)] * 2, "payload": [b"5", None]})  # fmt: skip

    async def work() -> None:
        async with (
            tree.connect("writer", "writes") as writer,
            tree.connect("reader", "reads", "fx") as reader,
            reader.subscribe("kind = 'ale' AND price > 90") as told,
        ):
            xml = b'<quote><kind>ale</kind><price type="integer">95</price></quote>'
            forms: list[Any] = [xml, msgspec.msgpack.encode(event), event, cloud]
            for number, attributes in enumerate(forms):
                await writer.publish(attributes, b"%d" % (number + 1))
            assert await writer.publish_many(table) == 2
            found = [await told.next(PATIENCE) for _ in range(5)]
            kept = {one.payload: one.attributes for one in found if isinstance(one, Delivery)}
            assert [*kept] == [b"1", b"2", b"3", b"4", b"5"]
            day = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
            assert (kept[b"1"], kept[b"4"]) == (event, cloud)
            assert kept[b"5"] == {"kind": "ale", "price": 91, "at": day}
            with pytest.raises(Refusal, match="found a document type"):
                await writer.publish(b"<!DOCTYPE n><n/>")

    running(work)


# -- channels --------------------------------------------------------------------------------------


def test_two_nodes_above_and_a_limit_for_one_channel(tree: Tree) -> None:
    """The first address above is nobody's. In one channel, an agent may want three nodes only."""

    async def work() -> None:
        async with tree.connect("reader", "reads") as reader:
            tea = reader.channel("tea")
            async with (
                tea.subscribe("n = 1", timeout=PATIENCE) as one,
                tea.subscribe("n = 2", timeout=PATIENCE),
                tea.subscribe("n = 3", timeout=PATIENCE),
                reader.subscribe("n = 1", timeout=PATIENCE) as other,
                reader.subscribe("n = 2", timeout=PATIENCE),
                reader.subscribe("n = 3", timeout=PATIENCE),
                reader.subscribe("n = 4", timeout=PATIENCE),
            ):
                with pytest.raises(TimedOut, match="the subscription was not confirmed"):
                    await tea.subscribe("n = 4", timeout=1.5).__aenter__()
                await tea.publish({"n": 1}, b"tea")
                await reader.publish({"n": 1}, b"fx")
                assert await payloads(one, 1) == [b"tea"]
                assert await payloads(other, 1) == [b"fx"]
            async with tea.subscribe("n = 4", timeout=PATIENCE):
                pass  # there is room again

    running(work)


# -- links that bypass the tree --------------------------------------------------------------------

SECRET_ROOT = """name = "root"
listen = "127.0.0.1:{0}"
journal = "secret"
[direct]
most = 4
address = "127.0.0.1:{0}"
"""
SECRET_EDGE = 'name = "edge"\nlisten = "127.0.0.1:0"\nupstream = "127.0.0.1:{0}"\n'
TLS = '[tls]\ncertificate = "{}"\nkey = "{}"\nauthorities = "{}"\n[tokens]\nreads = "*"\n'


def test_direct_links_over_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(direct_link, "SETTLED", 0.1)
    monkeypatch.setattr(direct_link, "PAUSES", (0.2, 0.5))
    (port,) = free_ports(1)
    authority = Authority(tmp_path, "ours")
    tls = {}
    for name in ("root", "edge"):
        files = authority.sign(name)
        tls[name] = TLS.format(files.certificate, files.key, authority.path)
    root = Process(tmp_path, "root", SECRET_ROOT.format(port) + tls["root"] + _TIMES)
    edge = Process(tmp_path, "edge", SECRET_EDGE.format(port) + tls["edge"] + _TIMES)

    async def work() -> None:
        async with (
            connect(f"tidings+tls://127.0.0.1:{edge.port}", token="reads",
                    authorities=authority.path, times=TIMES) as agent,
            agent.subscribe("n > 0") as told,
        ):  # fmt: skip
            await until(lambda: agent.state.direct == f"127.0.0.1:{port}")
            await agent.publish({"n": 1}, b"1")
            edge.signal(signal.SIGKILL)  # what is published elsewhere still comes
            async with connect(f"tidings+tls://127.0.0.1:{port}", token="reads",
                               authorities=authority.path, times=TIMES) as other:  # fmt: skip
                await other.publish({"n": 2}, b"2")
            assert await payloads(told, 2) == [b"1", b"2"]

    try:
        running(work)
    finally:
        edge.stop()
        root.stop()


def test_nobody_complained(tree: Tree) -> None:
    """The last test of this file."""
    for name, one in tree.nodes.items():
        assert one.is_up(), name
        assert "Traceback" not in one.log(), (name, one.log())
