"""Which clients are admitted and which are not, over real connections, with real certificates."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest
from tests.broker.certificates import Authority, Files
from tests.broker.networks import FAST, payloads, running
from tests.decoding import decode_all
from tests.waiting import PATIENCE, until

from tidings.broker import PreprocessorNode
from tidings.broker.admission.permissions import AGENT, TokenRights
from tidings.broker.config import Config, Tls, make_door, make_node
from tidings.broker.server import Server
from tidings.model import EnvironmentProblem
from tidings.network.agent import Refusal, Tagging, connect
from tidings.network.blocking import connect_blocking
from tidings.network.tls import client_context, load_certificate
from tidings.routing.clients.subscriber import Delivery
from tidings.routing.protocol import frames, messages as m

TOKENS: dict[str, str | TokenRights] = {
    "of anybody": "*",
    "of others": "*",
    "of bob": "bob",
    "of a router": TokenRights("router", frozenset({"route"})),
    "of reader": TokenRights("reader", frozenset({"subscribe"})),
    "of writers": TokenRights("*", frozenset({"publish"})),
}
Kind = TypeVar("Kind", bound=m.Message)
TIMES = msgspec.to_builtins(FAST)


class World:
    """An authority, another one, and nodes that are described by configurations."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ours, self.theirs = Authority(folder, "ours"), Authority(folder, "theirs")
        self.nodes: list[Server] = []
        self.given: list[m.Message] = []  # what the machine of the first node was given

    async def start(self, name: str, **more: Any) -> Server:
        """A node that listens, with its certificate unless `tls` says otherwise."""
        files = self.ours.sign(name)
        tls = Tls(str(files.certificate), str(files.key), str(self.ours.path))
        kind = {} if "upstream" in more else {"journal": f"{name}.db"}
        config = {"name": name, "listen": "127.0.0.1:0", "tls": tls, "times": TIMES, **kind, **more}
        node = make_node(Config(**config, folder=self.folder))
        await node.start()
        if not self.nodes:
            self._watch(node)
        self.nodes.append(node)
        return node

    def _watch(self, node: Server) -> None:
        receive = node.machine.receive

        def watched(sender: Any, message: m.Message, now: float) -> Any:
            self.given.append(message)
            return receive(sender, message, now)

        node.machine.receive = watched

    def client(self, files: Files | None = None) -> ssl.SSLContext:
        context = client_context(self.ours.path)
        if files is not None:
            load_certificate(context, files.certificate, files.key)
        return context

    async def stop(self) -> None:
        for node in reversed(self.nodes):
            await node.stop()


@contextlib.asynccontextmanager
async def world_in(folder: Path) -> AsyncIterator[World]:
    world = World(folder)
    try:
        yield world
    finally:
        await world.stop()


def in_world(folder: Path, work: Callable[[World], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with world_in(folder) as world:
            await work(world)

    running(whole)


async def frames_back(
    port: int, hello: m.Hello, tls: ssl.SSLContext | None, host: str = "127.0.0.1"
) -> list[m.Message]:
    """All that comes back to one who says everything at once and waits until the link ends."""
    said: list[m.Message] = [
        hello,
        m.Publish(hello.name, 1, 1, b'{"n": 1}', b"smuggled"),
        m.Ask(1, b"n > 0"),
        m.Subscribe(0, (1,)),
        m.Recover(0, 2, (m.Range(1, 1, 10),)),
    ]
    reader, writer = await asyncio.open_connection(host, port, ssl=tls)
    data = b""
    with contextlib.suppress(OSError):
        writer.write(b"".join(map(frames.encode, said)))
        while more := await asyncio.wait_for(reader.read(1 << 16), 5):
            data += more
    await closed(writer)
    return [*decode_all(data)]


async def closed(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


def sentences(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What a node warns of, but for the sums that it tells now and then."""
    found = (one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING)
    return [one for one in found if "refused so far" not in one]


# -- who does not come in ------------------------------------------------------------------------

NO_CERTIFICATE = "it has no certificate"
STRANGERS = [  # certificate, token, whether tokens are known here, what the node says of it
    ("theirs", "", False, "its certificate is not trusted: unable to get local issuer"),
    ("theirs", "of anybody", True, "its certificate is not trusted: unable to get local issuer"),
    ("expired", "", False, "its certificate is not trusted: certificate has expired"),
    ("expired", "of anybody", True, "its certificate is not trusted: certificate has expired"),
    ("other name", "", False, "the token is not known here, and no certificate"),
    ("other name", "", True, "the token is not known here, and no certificate"),
    ("other name", "of bob", True, "the token is bound to a name other than 'edge'"),
    ("", "", False, NO_CERTIFICATE),
    ("", "of anybody", False, NO_CERTIFICATE),
    ("", "", True, "the token is not known here"),
    ("", "wrong", True, "the token is not known here"),
    ("", "of bob", True, "the token is bound to a name other than 'edge'"),
    ("", "of BOB", True, "the token is not known here"),
    ("", "of anybod", True, "the token is not known here"),
    ("", "of anybody ", True, "the token is not known here"),
]


@pytest.mark.parametrize(("certificate", "token", "has_tokens", "sentence"), STRANGERS)
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_strangers(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, version: ssl.TLSVersion,
    certificate: str, token: str, has_tokens: bool, sentence: str,
) -> None:  # fmt: skip
    async def work(world: World) -> None:
        node = await world.start("root", tokens=TOKENS if has_tokens else None)
        files = {
            "": None,
            "theirs": world.theirs.sign("edge"),
            "expired": world.ours.sign("edge", expired=True),
            "other name": world.ours.sign("other"),
        }[certificate]
        context = world.client(files)
        context.maximum_version = version
        back: list[m.Message] = []
        with contextlib.suppress(OSError):  # before TLS 1.3, a handshake ends with it
            back = await frames_back(node.port, m.Hello("edge", token=token, routes=True), context)
        assert all(isinstance(one, m.Goodbye) for one in back)
        assert len(back) <= 1
        await until(lambda: sentences(caplog))
        assert [one for one in sentences(caplog) if sentence in one] == sentences(caplog)
        assert world.given == []
        assert node.refused == 1
        assert not node.links
        assert not node.connection_limits.strangers()

    in_world(tmp_path, work)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("", "found no name"),
        ("<upstream>", "found the name '<upstream>', which is reserved, expected another one"),
        ("*", "expected one without '/'"),
        ("bob/1", "expected one without '/'"),
        ("*/bob", "expected one without '/'"),
        ("bob", "the name 'bob' is bound to another token or a certificate"),
        ("reader", "the name 'reader' is bound to another token or a certificate"),
    ],
)
def test_names_that_guests_may_not_have(tmp_path: Path, name: str, sentence: str) -> None:
    async def work(world: World) -> None:
        node = await world.start("root", tokens=TOKENS)
        back = await frames_back(node.port, m.Hello(name, token="of anybody"), world.client())
        (goodbye,) = back
        assert isinstance(goodbye, m.Goodbye)
        assert sentence in goodbye.reason
        assert world.given == []

    in_world(tmp_path, work)


def test_an_empty_token_lets_nobody_in(tmp_path: Path) -> None:
    async def work(world: World) -> None:
        node = await world.start("root", tokens={"": "*"})
        (goodbye,) = await frames_back(node.port, m.Hello("a"), world.client())
        assert isinstance(goodbye, m.Goodbye)
        assert world.given == []

    in_world(tmp_path, work)


# -- who does ------------------------------------------------------------------------------------


def test_routers_by_certificates_and_agents_by_tokens(tmp_path: Path) -> None:
    async def work(world: World) -> None:
        root = await world.start("root")
        edge = await world.start("edge", upstream=f"127.0.0.1:{root.port}", tokens=TOKENS)
        await until(lambda: "edge" in root.links)
        at, ca = f"tidings+tls://localhost:{edge.port}", world.ours.path
        async with (
            connect(at, token="of anybody", authorities=ca, times=FAST) as guest,
            connect(at, token="of bob", name="bob", authorities=ca, times=FAST) as bob,
            guest.subscribe("n > 0") as told,
        ):
            await bob.publish({"n": 1}, b"of bob")
            await guest.publish({"n": 2}, b"of a guest")
            assert await payloads(told, 2) == [b"of bob", b"of a guest"]
            publishers = {one.publisher for one in world.given if isinstance(one, m.Publish)}
        first, second = sorted(publishers)
        assert re.fullmatch(rf"\*/{guest.name}/\w+", first)
        assert re.fullmatch(r"bob/\w+", second)

    in_world(tmp_path, work)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_certificates_of_servers(tmp_path: Path, host: str) -> None:
    """Agents and routers talk to a server only if an authority says that it is the host."""

    async def refused(world: World, port: int, authorities: Path) -> str:
        with pytest.raises(EnvironmentProblem) as found:
            async with connect(f"tidings+tls://{host}:{port}", authorities=authorities):
                pass
        return str(found.value)

    async def work(world: World) -> None:
        tokens: dict[str, str | TokenRights] = {"": "*"}
        for files, sentence in (
            (world.ours.sign("a", hosts=("elsewhere",), addresses=("10.0.0.1",)), "not valid for"),
            (world.ours.sign(host, hosts=(), addresses=()), "not valid for"),
            (world.ours.sign("b", expired=True), "certificate has expired"),
            (world.theirs.sign("c"), "self-signed certificate|unable to get local issuer"),
        ):
            tls = Tls(str(files.certificate), str(files.key))
            node = await world.start(files.certificate.stem, tls=tls, tokens=tokens)
            found = await refused(world, node.port, world.ours.path)
            assert re.search(sentence, found)
            assert found.startswith(f"can't connect to {host}:{node.port}: its certificate")
            assert "\n" not in found
            router = await world.start(f"below-{node.machine.name}",
                                       upstream=f"{host}:{node.port}")  # fmt: skip
            await until(lambda: node.refused >= 2)
            assert not router.links
        assert world.given == []

    in_world(tmp_path, work)


@pytest.mark.parametrize("secure", [True, False])
def test_preprocessors_with_tls(tmp_path: Path, secure: bool) -> None:
    """An agent that uses TLS never sends its token to a preprocessor in the clear."""

    async def work(world: World) -> None:
        root = await world.start("root", tokens={"t": TokenRights("*", AGENT | {"preprocess"})})
        at, ca = f"tidings+tls://localhost:{root.port}", world.ours.path
        files = world.ours.sign("pre")
        tls = Tls(str(files.certificate), str(files.key)) if secure else None
        config = Config("pre", "127.0.0.1:0", tls=tls, tokens={"t": "*"}, folder=tmp_path)
        door = make_door("127.0.0.1:0", "", config)
        async with (
            connect(at, token="t", authorities=ca, times=FAST, tag="local") as tagger,
            connect(at, token="t", authorities=ca, times=FAST) as reader,
            reader.subscribe("n > 0") as told,
        ):
            node = PreprocessorNode("pre", tagger, door, host="localhost", times=FAST)
            await node.start()
            assert node.address.startswith("tidings+tls://localhost:" if secure else "tidings://")
            tag: Tagging = "preprocessor"
            async with connect(
                at, token="t", authorities=ca, times=FAST, tag=tag, show_token=True
            ) as writer:
                found = await writer.preprocessors.wait_for_any(PATIENCE if secure else 1.0)
                assert found == secure
                await writer.publish({"n": 1}, b"1")
                assert await payloads(told, 1) == [b"1"]
                assert (writer.preprocessors.asked, node.tagged) == ((1, 1) if secure else (0, 0))
            await node.stop()

    in_world(tmp_path, work)


# -- TLS where there is none, and the other way round ----------------------------------------------


def test_in_the_clear_to_a_door_with_tls(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def work(world: World) -> None:
        node = await world.start("root", tokens=TOKENS)
        sentence = (
            "found a connection without TLS, expected TLS: use an address with tidings+tls://"
        )
        with pytest.raises(Refusal, match=re.escape(f"127.0.0.1:{node.port}: {sentence}")):
            async with connect(f"tidings://127.0.0.1:{node.port}", token="of anybody"):
                pass
        assert sentences(caplog) == [f"root: a stranger: {sentence}"]
        back = await frames_back(node.port, m.Hello("x", token="of anybody"), None)
        assert back == [m.Goodbye(sentence)]
        below = await world.start("below", tls=None, upstream=f"127.0.0.1:{node.port}")
        await until(lambda: f"below: the router above: {sentence}" in sentences(caplog))
        assert not below.links
        assert world.given == []

    in_world(tmp_path, work)


def test_tls_to_a_door_in_the_clear(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def work(world: World) -> None:
        node = await world.start("root", tls=None)
        sentence = "found TLS, expected none: use an address with tidings://"
        with pytest.raises(EnvironmentProblem, match=r"can't connect to .*: it does not speak TLS"):
            async with connect(f"tidings+tls://127.0.0.1:{node.port}", authorities=world.ours.path):
                pass
        assert sentences(caplog) == [f"root: a stranger: {sentence}"]
        below = await world.start("below", upstream=f"127.0.0.1:{node.port}")
        said = "below: the router above: it does not speak TLS"
        await until(lambda: said in sentences(caplog))
        assert not below.links
        assert world.given == []

    in_world(tmp_path, work)


def test_a_router_whose_certificate_is_refused(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It says so once, however often it tries."""

    async def work(world: World) -> None:
        root = await world.start("root")
        files = world.theirs.sign("edge")
        tls = Tls(str(files.certificate), str(files.key), str(world.ours.path))
        await world.start("edge", tls=tls, upstream=f"127.0.0.1:{root.port}")
        await until(lambda: root.refused >= 3)
        said = [one for one in sentences(caplog) if one.startswith("edge:")]
        assert len(said) == 1
        assert "certificate" in said[0]
        assert world.given == []

    in_world(tmp_path, work)


def test_who_says_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidings.broker.admission.connection_limits.GREETING", 0.2)
    monkeypatch.setattr("tidings.broker.connections.GREETING", 0.2)

    async def work(world: World) -> None:
        node = await world.start("root", tokens=TOKENS)
        silent = await asyncio.open_connection("127.0.0.1", node.port)
        half = await asyncio.open_connection("127.0.0.1", node.port)
        half[1].write(b"\x16\x03\x01")
        secret = await asyncio.open_connection("127.0.0.1", node.port, ssl=world.client())
        for reader, writer in (silent, half, secret):
            data = b""
            with contextlib.suppress(ConnectionError):
                data = await asyncio.wait_for(reader.read(), 5)
            assert all(isinstance(one, m.Goodbye) for one in decode_all(data))
            await closed(writer)
        assert not node.connection_limits.strangers()
        assert world.given == []

    in_world(tmp_path, work)


# -- names ---------------------------------------------------------------------------------------


class Raw:
    """One that says what it likes, frame by frame."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def open(
        cls, node: Server, world: World, hello: m.Hello, files: Files | None = None
    ) -> Raw:
        tls = world.client(files)
        self = cls(*await asyncio.open_connection("127.0.0.1", node.port, ssl=tls))
        self.say(hello)
        return self

    def say(self, *said: m.Message) -> None:
        self.writer.write(b"".join(map(frames.encode, said)))

    async def hear(self) -> m.Message:
        head = await asyncio.wait_for(self.reader.readexactly(4), 5)
        rest = await self.reader.readexactly(int.from_bytes(head, "little"))
        return frames.decode(head + rest)

    async def hear_a(self, kind: type[Kind]) -> Kind:
        while True:
            found = await self.hear()
            if isinstance(found, kind):
                return found

    async def close(self) -> None:
        await closed(self.writer)


def test_who_may_take_a_name_that_is_here(tmp_path: Path) -> None:
    """Whoever comes back, or has more right to it: nobody else."""

    async def work(world: World) -> None:
        node = await world.start("root", tokens=TOKENS)
        first = await Raw.open(node, world, m.Hello("ann", token="of anybody"))
        assert await first.hear_a(m.Welcome) == m.Welcome("root", "*/ann")
        other = await Raw.open(node, world, m.Hello("ann", token="of others"))
        assert await other.hear() == m.Goodbye("the name 'ann' is used by another client here")
        again = await Raw.open(node, world, m.Hello("ann", token="of anybody"))
        await again.hear_a(m.Welcome)
        said = await first.hear_a(m.Goodbye)
        assert said == m.Goodbye("it was replaced by another link of the same name")
        files = world.ours.sign("ann")
        certified = await Raw.open(node, world, m.Hello("ann"), files)
        assert await certified.hear_a(m.Welcome) == m.Welcome("root", "ann")
        assert await again.hear_a(m.Goodbye) == said
        await certified.close()
        await until(lambda: not node.links)
        late = await Raw.open(node, world, m.Hello("ann", token="of anybody"))
        assert await late.hear() == m.Goodbye(
            "the name 'ann' is bound to another token or a certificate"
        )
        for one in (first, other, again, late):
            await one.close()

    in_world(tmp_path, work)


def test_nobody_publishes_under_the_name_of_another(tmp_path: Path) -> None:
    async def work(world: World) -> None:
        node = await world.start("root", tokens=TOKENS)
        guest = await Raw.open(node, world, m.Hello("ann", token="of anybody"))
        bob = await Raw.open(node, world, m.Hello("bob", token="of bob"))
        for who, mine, others in (
            (guest, "*/ann", ["bob", "bob/1", "ann", "*/anna", "*/bob", "*", "", "*/"]),
            (bob, "bob", ["bobby", "bo", "*/bob", "ann", "*/ann", "edge/bob/1"]),
        ):
            await who.hear_a(m.Welcome)
            for name in others:
                who.say(m.Publish(name, 1, 1, b"{}", b""))
                answer = await who.hear_a(m.Published)
                assert answer.publisher == name
                assert f"expected one by '{mine}'" in answer.refusal
            assert not [one for one in world.given if isinstance(one, m.Publish)]
            for name in (mine, f"{mine}/1"):
                who.say(m.Publish(name, 1, 1, b"{}", b""))
                assert (await who.hear_a(m.Published)).refusal == ""
            world.given.clear()
            await who.close()

    in_world(tmp_path, work)


def test_routers_pass_on_what_others_publish(tmp_path: Path) -> None:
    async def work(world: World) -> None:
        node = await world.start("root", tokens=TOKENS)
        refused = await Raw.open(node, world, m.Hello("ann", token="of anybody", routes=True))
        goodbye = await refused.hear_a(m.Goodbye)
        assert "'ann' is a router, but its token may not route; expected" in goodbye.reason
        hello = m.Hello("router", token="of a router", routes=True)
        router = await Raw.open(node, world, hello)
        await router.hear_a(m.Welcome)
        router.say(m.Publish("somebody/1", 1, 1, b"{}", b""))
        assert (await router.hear_a(m.Published)).refusal == ""
        await refused.close()
        await router.close()

    in_world(tmp_path, work)


def test_what_a_token_may(tmp_path: Path) -> None:
    async def work(world: World) -> None:
        root = await world.start("root", tokens=TOKENS)
        at, ca = f"tidings+tls://127.0.0.1:{root.port}", world.ours.path
        async with (
            connect(at, name="reader", token="of reader", authorities=ca, times=FAST) as reader,
            connect(at, name="w", token="of writers", authorities=ca, times=FAST) as writer,
            reader.subscribe("n > 0") as told,
        ):
            with pytest.raises(Refusal, match="'reader' may not publish here"):
                await reader.publish({"n": 1}, b"1")
            with pytest.raises(Refusal, match="'w' may not subscribe here"):
                async with writer.subscribe("n > 0"):
                    pass
            await writer.publish({"n": 2}, b"2")
            assert await payloads(told, 1) == [b"2"]
        # neither can a writer by the number of a node, which is easily guessed
        raw = await Raw.open(root, world, m.Hello("w2", token="of writers"))
        await raw.hear_a(m.Welcome)
        world.given.clear()
        epoch = root.machine.epoch
        raw.say(m.Subscribe(epoch, (1,)), m.Wanted(epoch, (1,)), m.Redraw(epoch),
                m.Recover(epoch, 1, (m.Range(1, 1, 9),)), m.Count(epoch, 1, 1),
                m.Ask(7, b"n > 0"))  # fmt: skip
        assert (await raw.hear()) == m.Answer(epoch, 7, refusal="'w2' may not subscribe here")
        assert world.given == []
        await raw.close()

    in_world(tmp_path, work)


def test_what_was_for_another_of_the_same_name(tmp_path: Path) -> None:
    """Whoever may only publish is told nothing, though a reader of its name was here."""

    async def work(world: World) -> None:
        root = await world.start("root", tokens=TOKENS)
        epoch = root.machine.epoch
        reader = await Raw.open(root, world, m.Hello("ann", token="of anybody"))
        reader.say(m.Ask(1, b"n > 0"))
        node = (await reader.hear_a(m.Answer)).node
        reader.say(m.Subscribe(epoch, (node,)))
        await reader.hear_a(m.Setup)
        reader.writer.transport.abort()
        await reader.close()
        await until(lambda: not root.links)
        writer = await Raw.open(root, world, m.Hello("ann", token="of writers"))
        writer.say(m.Publish("*/ann", 1, 1, b'{"n": 1}', b"not for you"))
        heard: list[m.Message] = []
        while not any(isinstance(one, m.Beat) and one.serial == 1 for one in heard):
            heard.append(await writer.hear())
        assert {type(one) for one in heard} == {m.Welcome, m.Published, m.Beat}
        await writer.close()

    in_world(tmp_path, work)


def test_a_plain_token_can_not_erase_another_publisher(tmp_path: Path) -> None:
    """To publish under the name of another, with a stamp beyond all that it will ever have, is for
    routers; a token with a name alone is not one of a router."""

    async def work(world: World) -> None:
        tokens: dict[str, str | TokenRights] = {"of eve": "eve", "of bob": "bob"}
        root = await world.start("root", tokens=tokens)
        at, ca = f"tidings+tls://127.0.0.1:{root.port}", world.ours.path
        async with connect(at, name="bob", token="of bob", authorities=ca, times=FAST) as bob:
            victim = bob._publisher.name
            for routes in (True, False):
                eve = await Raw.open(root, world, m.Hello("eve", token="of eve", routes=routes))
                eve.say(m.Publish(victim, 1 << 62, 1 << 62, b"{}", b""))
                if routes:
                    assert "its token may not route" in (await eve.hear_a(m.Goodbye)).reason
                else:
                    refusal = (await eve.hear_a(m.Published)).refusal
                    assert f"found a publication by '{victim}'" in refusal
                await eve.close()
            async with bob.subscribe("n > 0") as told:
                for n in range(1, 21):
                    await bob.publish({"n": n}, b"%d" % n)
                assert await payloads(told, 20) == [b"%d" % n for n in range(1, 21)]

    in_world(tmp_path, work)


@pytest.mark.parametrize(
    ("signed", "let_in"),
    [
        ({"name": "edge"}, True),
        ({"name": "web server", "hosts": ("edge",)}, False),
        ({"name": "web server", "uris": ("tidings:router/edge",)}, True),
        ({"name": "web server", "uris": ("https://example.org/edge", "edge")}, False),
        ({"name": "edge", "uris": ("tidings:router/other",)}, False),
    ],
)
def test_what_names_a_router_in_a_certificate(
    tmp_path: Path, signed: dict[str, Any], let_in: bool
) -> None:
    """Its common name, or a URI of ours: the names of hosts are those of hosts."""

    async def work(world: World) -> None:
        root = await world.start("root")
        files = world.ours.sign(**signed)
        one = await Raw.open(root, world, m.Hello("edge", routes=True), files)
        found = await one.hear()
        assert isinstance(found, m.Welcome if let_in else m.Goodbye)
        if isinstance(found, m.Goodbye):
            assert "no certificate has the name" in found.reason
        await one.close()

    in_world(tmp_path, work)


def test_tokens_that_are_read_again(tmp_path: Path) -> None:
    """Whose token is gone, or may less, is sent away; who may more goes on."""

    async def work(world: World) -> None:
        root = await world.start("root", tokens=TOKENS)
        ann, bob, reader, guest = [
            await Raw.open(root, world, m.Hello(name, token=token))
            for name, token in (
                ("ann", "of anybody"), ("bob", "of bob"), ("reader", "of reader"),
                ("zoe", "of others"),
            )
        ]  # fmt: skip
        for one in (ann, bob, reader, guest):
            await one.hear_a(m.Welcome)
        fresh: dict[str, str | TokenRights] = {
            "of bob": TokenRights("bob", frozenset({"subscribe"})),
            "of reader": "reader",
            "of others": "*",
        }
        assert root.renew(fresh) == 2
        assert root.door.tokens == fresh
        gone = await ann.hear_a(m.Goodbye)
        assert gone.reason.startswith("the tokens were read again: the token is not known here")
        less = await bob.hear_a(m.Goodbye)
        assert less.reason == ("the tokens were read again: the token has fewer rights than before")
        reader.say(m.Publish("reader", 1, 1, b"{}", b""))
        assert (await reader.hear_a(m.Published)).refusal == ""
        guest.say(m.Publish("*/zoe", 1, 1, b"{}", b""))
        assert (await guest.hear_a(m.Published)).refusal == ""
        again = await Raw.open(root, world, m.Hello("bob", token="of bob"))
        await again.hear_a(m.Welcome)
        again.say(m.Publish("bob", 1, 1, b"{}", b""))
        assert (await again.hear_a(m.Published)).refusal == "'bob' may not publish here"
        for one in (ann, bob, reader, guest, again):
            await one.close()

    in_world(tmp_path, work)


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1:DeprecationWarning")
def test_old_versions_of_tls(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def work(world: World) -> None:
        node = await world.start("root", tokens=TOKENS)
        context = world.client()
        context.set_ciphers("ALL@SECLEVEL=0")
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
        with pytest.raises(OSError):  # noqa: PT011
            await frames_back(node.port, m.Hello("x", token="of anybody"), context)
        await until(lambda: sentences(caplog))
        assert sentences(caplog) == ["root: a stranger: it speaks another version of TLS"]
        assert world.given == []

    in_world(tmp_path, work)


def test_without_async(tmp_path: Path) -> None:
    async def work(world: World) -> None:
        root = await world.start("root", tokens=TOKENS)
        at, ca = f"tidings+tls://127.0.0.1:{root.port}", world.ours.path

        def script() -> None:
            with (
                connect_blocking(at, token="of anybody", authorities=ca, times=FAST) as agent,
                agent.subscribe("n > 0") as told,
            ):
                agent.publish({"n": 1}, b"1")
                one = told.next(120)
                assert isinstance(one, Delivery)
                assert one.payload == b"1"

        await asyncio.to_thread(script)

    in_world(tmp_path, work)


def test_an_agent_that_is_started_again_under_its_name(tmp_path: Path) -> None:
    """What it publishes then is not taken for what it published before."""

    async def work(world: World) -> None:
        root = await world.start("root", tokens=TOKENS)
        at, ca = f"tidings+tls://127.0.0.1:{root.port}", world.ours.path
        async with (
            connect(at, token="of anybody", authorities=ca, times=FAST) as reader,
            reader.subscribe("n > 0") as told,
        ):
            for n in (1, 2):
                async with connect(at, name="bob", token="of bob", authorities=ca) as bob:
                    await bob.publish({"n": n}, b"%d" % n)
            assert await payloads(told, 2) == [b"1", b"2"]

    in_world(tmp_path, work)
