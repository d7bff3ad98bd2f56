"""Signed grants, over real connections and as real processes: who has one may subscribe to its
node, and gets exactly what the filter matches; all other grants are refused with a message."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
from tests.broker.networks import FAST, at, payloads, running, started, stopped
from tests.broker.processes import Process, write_secret
from tests.forking import Forked
from tests.waiting import until

from tidings.broker import Address, Door, KeyProblem, PreprocessorNode, RootNode, RouterNode, Signer
from tidings.broker.admission import signing
from tidings.broker.admission.permissions import TokenRights, Tokens
from tidings.filters import Ontology
from tidings.network import Agent, Refusal, SignedGrant, connect
from tidings.preprocessing import KindDefinition
from tidings.routing.channels import Route
from tidings.routing.protocol import Grant, messages as m, unpack_grant
from tidings.studies.host.ports import free_ports

PRIVATE, PUBLIC = Signer.generate()
OTHER_PRIVATE, OTHER_PUBLIC = Signer.generate()
KEYS = {"tagger": PUBLIC}
RIGHTS = frozenset({"route", "publish", "subscribe", "preprocess"})
TOKENS: Tokens = {
    "edges": TokenRights("r0", RIGHTS),  # type: ignore[arg-type]
    "tags": TokenRights("tagger", frozenset({"subscribe", "preprocess"})),
    "writes": "writer",
    "it": TokenRights("milan", within="region = 'EU'", signed=True),
    "eu": TokenRights("berlin", within="region = 'EU'"),
    "us": TokenRights("boston", signed=True),
    "mute": TokenRights("mute", frozenset({"publish"})),
}


class Place:
    """A root, perhaps with a router beneath it, and a preprocessor that signs."""

    def __init__(self, root: RootNode, last: RootNode | RouterNode, node: PreprocessorNode) -> None:
        self.root, self.last, self.node = root, last, node

    def connect(self, name: str, token: str) -> contextlib.AbstractAsyncContextManager[Agent]:
        return connect(at(self.last), name=name, token=token, times=FAST, show_token=True)


@contextlib.asynccontextmanager
async def a_place(folder: Path, routers: int, tokens: Tokens = TOKENS) -> AsyncIterator[Place]:
    network = root, chain = await started(folder, 0, tokens=tokens, keys=KEYS)
    for name in ("r0",)[:routers]:
        above, door = Address("127.0.0.1", root.port), Door(tokens=tokens, keys=KEYS)
        chain.append(RouterNode(name, above, door, times=FAST, token="edges"))
        await chain[0].start()
    async with connect(at(root), name="tagger", token="tags", tag="local", times=FAST) as tagger:
        node = PreprocessorNode(
            "tagger", tagger, Door(tokens=tokens), times=FAST, signer=Signer(PRIVATE)
        )
        await node.start()
        yield Place(root, chain[-1] if chain else root, node)
        await node.stop()
    await stopped(network)


@pytest.mark.parametrize("routers", [0, 1])
def test_a_grant_is_enough(tmp_path: Path, routers: int) -> None:
    """Also for notifications that other nodes below the granted one mark, and that were missed."""

    async def work() -> None:
        async with (
            a_place(tmp_path, routers) as place,
            place.connect("milan", "it") as milan,
            place.connect("boston", "us") as boston,
            place.connect("writer", "writes") as writer,
            writer.subscribe("n > 3 AND region = 'EU' AND word = 'a'"),
        ):
            with pytest.raises(Refusal, match="'milan' may subscribe only with a signed grant"):
                async with milan.subscribe("region = 'EU'"):
                    pass
            with pytest.raises(Refusal, match=r"write: \(n > 3\) AND \(region = 'EU'\)"):
                await milan.grant("n > 3")
            grant = await milan.grant("n > 3 AND region = 'EU'")
            assert 3500 < grant.expires - time.time() <= 3600
            asked = place.root.machine.beyond["outside"]
            async with (
                milan.subscribe(grant=grant) as told,
                boston.subscribe(grant=await boston.grant("n > 5")) as other,
            ):
                assert told.node == grant.node
                due = []
                for number in range(40):
                    event = {"n": number % 9, "region": ("EU", "US")[number % 2],
                             "word": "ab"[number // 2 % 2]}  # fmt: skip
                    await writer.publish(event, b"%d" % number)
                    if event["n"] > 3 and number % 2 == 0:  # type: ignore[operator]
                        due.append(b"%d" % number)
                assert await payloads(told, len(due)) == due
                high = [b"%d" % number for number in range(40) if number % 9 > 5]
                assert await payloads(other, len(high)) == high
                # a lost link, and what was published meanwhile
                milan._agent_link._link.abort("cut")  # type: ignore[union-attr]
                for number in range(40, 60):
                    await writer.publish({"n": 7, "region": "EU", "word": "a"}, b"%d" % number)
                assert await payloads(told, 20) == [b"%d" % number for number in range(40, 60)]
            assert place.root.machine.beyond["outside"] == asked
            async with milan.subscribe(grant=SignedGrant(grant.data), name="mine") as named:
                await writer.publish({"n": 7, "region": "EU"}, b"named")
                assert await payloads(named, 1) == [b"named"]

    running(work)


def forge(grant: SignedGrant, private: str = PRIVATE, **changes: object) -> SignedGrant:
    body = unpack_grant(grant.data)
    assert body is not None
    body = msgspec.structs.replace(body, **changes)
    return SignedGrant(Signer(private).sign(body))


def test_what_is_refused(tmp_path: Path) -> None:
    async def refuse(agent: Agent, grant: SignedGrant, sentence: str) -> None:
        with pytest.raises(Refusal, match=sentence):
            async with agent.subscribe(grant=grant, timeout=20):
                pass

    async def work() -> None:
        async with (
            a_place(tmp_path, 1) as place,
            place.connect("milan", "it") as milan,
            place.connect("berlin", "eu") as berlin,
            place.connect("boston", "us") as boston,
            place.connect("mute", "mute") as mute,
        ):
            grant = await milan.grant("region = 'EU'")
            with pytest.raises(Refusal, match="'mute' may not subscribe"):
                await mute.grant("n > 3")
            await refuse(mute, grant, "'mute' may not subscribe here")
            await refuse(boston, grant, "the grant is for 'milan', but 'boston' presents it")
            await refuse(milan, forge(grant, OTHER_PRIVATE), "a key that is not known here; exp.*"
                         r"\[grants\]: tagger")  # fmt: skip
            altered = bytearray(grant.data)
            altered[-1] ^= 1
            await refuse(milan, SignedGrant(bytes(altered)), "not signed with the key of 'tagger'")
            await refuse(milan, forge(grant, channel="other"), "for the channel 'other', expected")
            late = forge(grant, expires=int(time.time()) - 5)
            await refuse(milan, late, "the grant expired [56] seconds ago")
            long = forge(grant, expires=int(time.time()) + 9000)
            await refuse(milan, long, r"expires in [89],\d\d\d seconds, expected at most 3,600")
            await refuse(milan, forge(grant, life=12345), "has lost the life in which")
            await refuse(milan, forge(grant, node=98765), "the router refuses the node")
            with pytest.raises(Refusal, match="the 5 bytes given as a grant"):
                milan.subscribe(grant=SignedGrant(b"hello"))
            with pytest.raises(Refusal, match="found 2 of filter, node and grant"):
                milan.subscribe("n > 3", grant=grant)
            # a grant can't widen the limits that a router has for an agent
            wide = forge(await berlin.grant("region = 'EU'"), within=("n > 3",))
            await refuse(berlin, wide, "not say that the node is covered by region = 'EU'")
            long_filter = "n IN (" + ", ".join(str(number) for number in range(1500)) + ")"
            with pytest.raises(Refusal, match="characters in SQL, expected at most 4,096"):
                await boston.grant(long_filter)
            assert place.last.machine.beyond["grants"] >= 7
            async with berlin.subscribe(grant=await berlin.grant("region = 'EU'")):
                pass

    running(work)


def test_preprocessors_that_sign_know_who_asks(tmp_path: Path) -> None:
    async def work() -> None:
        network = root, _ = await started(tmp_path, 0)
        async with (
            connect(at(root), tag="local", times=FAST) as tagger,
            connect(at(root), times=FAST) as agent,
        ):
            with pytest.raises(KeyProblem, match="but no tokens; expected"):
                PreprocessorNode("pre", tagger, Door(), signer=Signer(PRIVATE))
            node = PreprocessorNode("pre", tagger, Door(), times=FAST)
            await node.start()
            with pytest.raises(Refusal, match="'pre' signs no grants"):
                await agent.grant("n > 3")
            await node.stop()
        await stopped(network)

    running(work)


def test_grants_expire_unless_they_are_renewed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the preprocessor is there, the agent goes on; without it, the subscription ends."""
    monkeypatch.setattr("tidings.broker.preprocessors.granting.LIFETIME", 3.0)

    async def work() -> None:
        async with (
            a_place(tmp_path, 1) as place,
            place.connect("milan", "it") as milan,
            place.connect("writer", "writes") as writer,
        ):
            grant = await milan.grant("region = 'EU'")
            async with milan.subscribe(grant=grant) as told:
                await until(lambda: time.time() > grant.expires + 1.5)
                await writer.publish({"region": "EU"}, b"later")
                assert await payloads(told, 1) == [b"later"]
                await place.node.stop()
                with pytest.raises(Refusal, match="the grant has ended"):
                    async for _ in told:
                        pass
                await until(lambda: not place.last.machine.graph)

    running(work)


def test_keys_change_while_a_router_runs(tmp_path: Path) -> None:
    async def work() -> None:
        async with (
            a_place(tmp_path, 1) as place,
            place.connect("milan", "it") as milan,
            place.connect("writer", "writes") as writer,
        ):
            grant = await milan.grant("region = 'EU'")
            async with milan.subscribe(grant=grant) as told:
                place.last.renew_keys({"tagger": PUBLIC, "another": OTHER_PUBLIC})
                await writer.publish({"region": "EU"}, b"still")
                assert await payloads(told, 1) == [b"still"]
                place.last.renew_keys({"another": OTHER_PUBLIC})
                with pytest.raises(Refusal, match="the grant has ended"):
                    async for _ in told:
                        pass
            with pytest.raises(Refusal, match=r"\[grants\]: another"):
                async with milan.subscribe(grant=grant):
                    pass

    running(work)


def test_a_guest_does_not_inherit_grants(tmp_path: Path) -> None:
    tokens: Tokens = {
        **TOKENS,
        "g1": TokenRights("*", signed=True),
        "g2": TokenRights("*", signed=True),
    }

    async def work() -> None:
        async with a_place(tmp_path, 1, tokens) as place:
            async with place.connect("guest", "g1") as first:
                grant = await first.grant("n > 3")
                async with first.subscribe(grant=grant):
                    pass
            async with place.connect("guest", "g2") as second:
                with pytest.raises(Refusal, match=r"the grant is for '\*/"):
                    async with second.subscribe(grant=grant):
                        pass
                second.send_up(m.Subscribe(second.life, (grant.node,)))
                await until(lambda: place.last.machine.beyond["not granted"] > 0)
                assert not place.last.machine.neighbours["guest"].nodes

    running(work)


def test_grants_in_another_channel(tmp_path: Path) -> None:
    """An agent presents a grant in a channel other than the router's own. It is of no use in the
    router's own channel, and ends with its key."""
    every = tuple(
        msgspec.structs.replace(
            one if isinstance(one, TokenRights) else TokenRights(one), channels=("*",)
        )
        for one in TOKENS.values()
    )
    tokens = dict(zip(TOKENS, every, strict=True))

    async def work() -> None:
        fx = RootNode("fx", tmp_path / "fx", Door(channel="fx", tokens=tokens), times=FAST)
        tea = RootNode("tea", tmp_path / "tea", Door(channel="tea", tokens=tokens), times=FAST)
        await fx.start()
        await tea.start()
        above = [Address("127.0.0.1", one.port) for one in (fx, tea)]
        edge = RouterNode(
            "r0", above[0], Door(channel="fx", tokens=tokens, keys=KEYS), times=FAST,
            token="edges", hops={"west": [above[1]]}, routes={"tea": Route("west")},
        )  # fmt: skip
        await edge.start()
        there = f"tidings://127.0.0.1:{tea.port}/tea"
        async with connect(there, name="tagger", token="tags", tag="local", times=FAST) as tagger:
            door = Door(channel="tea", tokens=tokens)
            node = PreprocessorNode("tagger", tagger, door, times=FAST, signer=Signer(PRIVATE))
            await node.start()
            address = f"tidings://127.0.0.1:{edge.port}/fx"
            async with (
                connect(address, name="boston", token="us", times=FAST, show_token=True) as boston,
                connect(address, name="writer", token="writes", times=FAST) as writer,
            ):
                channel = boston.channel("tea")
                grant = await channel.grant("n > 3")
                with pytest.raises(Refusal, match="'fx'"):
                    async with boston.subscribe(grant=grant):
                        pass
                async with channel.subscribe(grant=grant) as told:
                    await writer.publish({"n": 5}, b"fx")
                    await writer.channel("tea").publish({"n": 5}, b"tea")
                    assert await payloads(told, 1) == [b"tea"]
                    with pytest.raises(Refusal, match="only with a signed grant here"):
                        async with channel.subscribe("n > 4"):
                            pass
                    edge.renew_keys({"another": OTHER_PUBLIC})
                    with pytest.raises(Refusal, match="the grant has ended"):
                        async for _ in told:
                            pass
            await node.stop()
        for one in (edge, tea, fx):
            await one.stop()

    running(work)


# -- keys ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "found other text, expected a public key"),
        (PRIVATE, "found a key of the other kind, expected a public key"),
        ("ed25519:?", "found a key that is not base64"),
        ("ed25519:AAAA", "found a key of 3 bytes"),
    ],
    ids=["empty", "private", "not base64", "short"],  # the same in all test processes
)
def test_keys_that_are_refused(text: str, sentence: str) -> None:
    with pytest.raises(KeyProblem, match=sentence):
        signing.PublicKeys({"a": text})
    if text != PRIVATE:
        with pytest.raises(KeyProblem, match="a private key"):
            Signer(text)


def test_any_altered_grant_is_refused(seed: int) -> None:
    """Every single bit matters."""
    keys, now = signing.PublicKeys(KEYS), time.time()
    body = Grant(b"", "milan", "news", 7, 9, int(now + 3000), ("region = 'EU'",))
    data = Signer(PRIVATE).sign(body)
    found = keys.judge(data, "milan", "news", now)
    assert isinstance(found, Grant)
    assert (found.node, found.life, found.within) == (9, 7, ("region = 'EU'",))
    for at_ in range(8 * len(data)):
        altered = bytearray(data)
        altered[at_ // 8] ^= 1 << at_ % 8
        assert isinstance(keys.judge(bytes(altered), "milan", "news", now), str)
    for size in range(len(data)):
        assert isinstance(keys.judge(data[:size], "milan", "news", now), str)
    assert isinstance(keys.judge(data + b"\0", "milan", "news", now), str)


# -- processes -------------------------------------------------------------------------------------

ROOT = """
name = "root"
listen = "127.0.0.1:0"
journal = "journal"
[tokens]
edges = {{name = "edge", may = ["route", "publish", "subscribe", "preprocess"]}}
tags = {{name = "tagger", may = ["subscribe", "preprocess"]}}
"""
EDGE = """
name = "edge"
listen = "127.0.0.1:{listen}"
upstream = "127.0.0.1:{port}"
token = "edges"
[tokens]
it = {{name = "milan", signed = true}}
writes = "writer"
[grants]
{line}
"""
AGENTS = """
name = "agents"
listen = "127.0.0.1:0"
upstream = "127.0.0.1:1"
[tokens]
it = {{name = "milan", within = "{within}"}}
writes = "writer"
"""


def test_processes(tmp_path: Path) -> None:
    """`tidings key`, a root, a router that is killed, and a preprocessor whose rights change."""
    made = subprocess.run(
        [sys.executable, "-m", "tidings", "key", str(tmp_path / "tagger")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    line = made.stdout.strip()
    assert line.startswith('tagger = "ed25519:')
    assert (tmp_path / "tagger").stat().st_mode & 0o777 == 0o600
    again = subprocess.run(
        [sys.executable, "-m", "tidings", "key", str(tmp_path / "tagger")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert again.returncode
    assert "exists already, expected a new file" in again.stderr
    root = Process(tmp_path, "root", ROOT.format())
    (listen,) = free_ports(1)
    edge = Process(tmp_path, "edge", EDGE.format(port=root.port, line=line, listen=listen))
    agents = write_secret(tmp_path / "agents.toml", AGENTS.format(within="region = 'EU'"))
    errors = (tmp_path / "tagger.log").open("w+")
    tagger = Forked(
        [sys.executable, "-m", "tidings", "preprocessor", f"tidings://127.0.0.1:{root.port}",
         "--name", "tagger", "--token", "tags", "--key", str(tmp_path / "tagger"),
         "--config", str(agents)],
        stdout=subprocess.PIPE, stderr=errors, text=True,
    )  # fmt: skip
    assert tagger.stdout is not None
    assert tagger.stdout.readline().startswith("the preprocessor listens on")
    there = f"tidings://127.0.0.1:{edge.port}"

    async def work() -> None:
        nonlocal edge
        async with (
            connect(there, name="milan", token="it", show_token=True) as milan,
            connect(there, name="writer", token="writes") as writer,
        ):
            grant = await milan.grant("region = 'EU' AND n > 1")
            async with milan.subscribe(grant=grant) as told:
                await writer.publish({"region": "EU", "n": 2}, b"a")
                assert await payloads(told, 1) == [b"a"]
                edge.signal(signal.SIGKILL)
                edge.stop()
                text = EDGE.format(port=root.port, line=line, listen=listen)
                edge = await asyncio.to_thread(Process, tmp_path, "edge", text)
                await writer.publish({"region": "EU", "n": 3}, b"b")
                assert await payloads(told, 1) == [b"b"]
                # another key instead: the grant ends
                _, public = Signer.generate()
                write_secret(tmp_path / "edge.toml", text.replace(line, f'new = "{public}"'))
                edge.signal(signal.SIGHUP)
                with pytest.raises(Refusal, match="the grant has ended"):
                    async for _ in told:
                        pass
            write_secret(agents, AGENTS.format(within="region = 'US'"))
            tagger.send_signal(signal.SIGHUP)
            log = tmp_path / "tagger.log"
            await until(lambda: "the tokens were read again" in log.read_text())
            await until(lambda: not len(milan.preprocessors))
            await until(lambda: len(milan.preprocessors) > 0)  # another link, with other rights
            with pytest.raises(Refusal, match=r"AND \(region = 'US'\)"):
                await milan.grant("region = 'EU' AND n > 1")

    try:
        asyncio.run(asyncio.wait_for(work(), 60))
    finally:
        tagger.terminate()
        tagger.communicate(timeout=120)
        errors.close()
        edge.stop()
        root.stop()


def test_a_grant_for_a_topic(tmp_path: Path) -> None:
    """A grant names a node of any kind of interest, and limits its agent to the topic."""
    topics = Ontology({"football": "sports", "chess": "games"})
    kind = KindDefinition("topics", "topic").with_ontology(topics)

    async def work() -> None:
        root = RootNode("root", tmp_path, Door(tokens=TOKENS, keys=KEYS), kind=kind, times=FAST)
        await root.start()
        async with connect(at(root), name="tagger", token="tags", tag="local", times=FAST) as one:
            node = PreprocessorNode(
                "tagger", one, Door(tokens=TOKENS), times=FAST, signer=Signer(PRIVATE)
            )
            await node.start()
            async with (
                connect(at(root), name="boston", token="us", times=FAST, show_token=True) as boston,
                connect(at(root), name="writer", token="writes", times=FAST) as writer,
            ):
                with pytest.raises(Refusal, match="there is no topic 'sport'"):
                    await boston.grant("sport", "topics")
                grant = await boston.grant("sports", "topics")
                async with boston.subscribe(grant=grant) as told:
                    for topic in ("chess", "football"):
                        await writer.publish({"topic": topic}, topic.encode())
                    assert await payloads(told, 1) == [b"football"]
            await node.stop()
        await root.stop()

    running(work)
