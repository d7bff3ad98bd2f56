"""Tickets, which routers sign for their clients: a preprocessor knows who asks, and never sees a
token. Over real connections and as processes; all other tickets are refused in a sentence."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
from tests.broker.networks import BRIEF, at, payloads, running
from tests.broker.processes import Process, write_secret
from tests.forking import Forked
from tests.waiting import until

from tidings.broker import (
    Address,
    Door,
    KeyProblem,
    PreprocessorNode,
    RootNode,
    RouterNode,
    Signer,
    connections as connections_module,
)
from tidings.broker.admission import signing, tickets
from tidings.broker.admission.permissions import (
    PermissionRegister,
    Permissions,
    TokenRights,
    Tokens,
)
from tidings.broker.admission.signing import PublicKeys
from tidings.broker.config import ConfigError, load_config
from tidings.network import Agent, Refusal, connect
from tidings.network.agents.tags import preprocessors as preprocessors_module
from tidings.routing.protocol import Ticket, messages as m, unpack_ticket

PRIVATE, PUBLIC = Signer.generate()
OTHER_PRIVATE, OTHER_PUBLIC = Signer.generate()
GRANTS = Signer.generate()
AT_ROOT: Tokens = {
    "edges": TokenRights("edge", frozenset({"route", "publish", "subscribe", "preprocess"})),
    "tags": TokenRights("tagger", frozenset({"subscribe", "preprocess"})),
}
AT_EDGE: Tokens = {
    "it": TokenRights("milan", within="region = 'EU'", signed=True),
    "writes": TokenRights("writer", frozenset({"publish", "subscribe", "preprocess"})),
    "guests": TokenRights("*", frozenset({"publish", "subscribe", "preprocess"})),
}
Seen = list[tuple[m.Hello, Permissions | str]]


class Place:
    def __init__(self, edge: RouterNode, node: PreprocessorNode, seen: Seen) -> None:
        self.edge, self.node, self.seen = edge, node, seen

    def connect(
        self, name: str, token: str, *, show_token: bool = False
    ) -> contextlib.AbstractAsyncContextManager[Agent]:
        return connect(
            at(self.edge), name=name, token=token, times=BRIEF, tag="preprocessor",
            show_token=show_token,
        )  # fmt: skip


@contextlib.asynccontextmanager
async def a_place(
    folder: Path, monkeypatch: pytest.MonkeyPatch, key: str = PRIVATE, tokens: Tokens | None = None,
    *, is_open: bool = False,
) -> AsyncIterator[Place]:  # fmt: skip
    """A root, a router that signs tickets if it has a key, and a preprocessor, whose greetings are
    noted."""
    root = RootNode("root", folder / "journal.db", Door(tokens=AT_ROOT), times=BRIEF)
    await root.start()
    door = Door(tokens=AT_EDGE, keys={"tagger": GRANTS[1]}, ticket_key=key)
    edge = RouterNode("edge", Address("127.0.0.1", root.port), door, times=BRIEF, token="edges")
    await edge.start()
    seen: Seen = []
    async with connect(at(root), name="tagger", token="tags", tag="local", times=BRIEF) as tagger:
        door = Door(tickets={"edge": PUBLIC} if key else None, tokens=tokens)
        signer = None if is_open else Signer(GRANTS[0])
        node = PreprocessorNode("tagger", tagger, door, times=BRIEF, signer=signer)
        admit = node._connections._admit

        def noted(hello: m.Hello, certified: frozenset[str]) -> Permissions | str:
            found = admit(hello, certified)
            seen.append((hello, found))
            return found

        monkeypatch.setattr(node._connections, "_admit", noted)
        await node.start()
        yield Place(edge, node, seen)
        await node.stop()
    await edge.stop()
    await root.stop()


def test_preprocessors_see_no_tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither of agents with names of their own nor of guests, whose owners stay the same."""

    async def work() -> None:
        async with (
            a_place(tmp_path, monkeypatch) as place,
            place.connect("writer", "writes") as writer,
            place.connect("someone", "guests") as guest,
            writer.subscribe("n > 3") as told,
        ):
            for one in (writer, guest):
                await until(lambda one=one: len(one.preprocessors) == 1)  # type: ignore[misc]
                await one.publish({"n": 5}, one.name.encode())
            assert await payloads(told, 2) == [b"writer", b"someone"]
            assert place.node.tagged == 2
            assert {hello.name for hello, _ in place.seen} == {"writer", "someone"}
            for hello, found in place.seen:
                assert not hello.token
                assert isinstance(found, Permissions)
                assert found.owner == place.edge.connections.owner_of(hello.name)
                assert found.may == {"publish", "subscribe", "preprocess"}

    running(work)


@pytest.mark.parametrize("shown", [False, True])
def test_tokens_are_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, shown: bool
) -> None:
    """Without a ticket, an agent shows its token only if the application allows it. Otherwise the
    rendezvous point tags, and a sentence says what to set; it is logged once."""
    sentence = (
        "refuses 'writer': the token is not known here, and no certificate has the name; the "
        "token was not shown, because no ticket was signed: set ticket_key in the file of the "
        "agent's router, or allow the agent to show its token: connect(..., show_token=True), or "
        "--show-token"
    )

    async def work() -> None:
        async with (
            a_place(tmp_path, monkeypatch, key="", tokens={"writes": "writer"}) as place,
            place.connect("writer", "writes", show_token=shown) as writer,
            writer.subscribe("n > 3") as told,
        ):
            await until(lambda: place.seen)
            if shown:
                await until(lambda: len(writer.preprocessors) == 1)
            await writer.publish({"n": 5}, b"5")
            assert await payloads(told, 1) == [b"5"]
            assert place.node.tagged == writer.preprocessors.asked == shown
            assert {hello.token for hello, _ in place.seen} == {"writes" if shown else ""}
            if shown:
                assert writer.preprocessors.refusal == ""
                assert (await writer.header({"n": 5})).data
                return
            for ask in (writer.node_of("n > 3"), writer.grant("n > 3"), writer.header({"n": 5})):
                with pytest.raises(Refusal) as found:
                    await ask
                assert str(found.value).endswith(sentence)
            monkeypatch.setattr(preprocessors_module, "AGAIN", 0.0)
            tried = len(place.seen)
            await until(lambda: len(place.seen) >= tried + 2)

    running(work)
    logged = [one.getMessage() for one in caplog.records if one.name.startswith("tidings.network")]
    assert [one.partition(" refuses ")[2] for one in logged] == (
        [] if shown else [sentence.removeprefix("refuses ")]
    )


def test_preprocessors_for_anybody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They need neither a ticket nor a token."""

    async def work() -> None:
        async with (
            a_place(tmp_path, monkeypatch, key="", is_open=True) as place,
            place.connect("writer", "writes") as writer,
            writer.subscribe("n > 3") as told,
        ):
            await until(lambda: len(writer.preprocessors) == 1)
            await writer.publish({"n": 5}, b"5")
            assert await payloads(told, 1) == [b"5"]
            assert place.node.tagged == 1
            assert [hello.token for hello, _ in place.seen] == [""]

    running(work)


@pytest.mark.parametrize("tokens", [None, {"other": TokenRights("milan", within="region = 'IT'")}])
def test_limits_come_with_the_ticket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tokens: Tokens | None
) -> None:
    """Unless a token of the preprocessor has the same name: then its limits count."""
    region = "EU" if tokens is None else "IT"

    async def work() -> None:
        async with (
            a_place(tmp_path, monkeypatch, tokens=tokens) as place,
            place.connect("milan", "it") as milan,
            place.connect("writer", "writes") as writer,
        ):
            with pytest.raises(Refusal, match=rf"write: \(n > 3\) AND \(region = '{region}'\)"):
                await milan.grant("n > 3")
            grant = await milan.grant(f"n > 3 AND region = '{region}'")
            async with milan.subscribe(grant=grant) as told:
                await writer.publish({"n": 5, "region": region}, b"5")
                assert await payloads(told, 1) == [b"5"]

    running(work)


def test_tickets_are_renewed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A link outlives several tickets; when no more are signed, it ends."""
    for module in (tickets, signing):  # they are renewed after half of it
        monkeypatch.setattr(module, "TICKET_LIFETIME", 8.0)
    monkeypatch.setattr(connections_module, "SKEW", 0.0)

    async def work() -> None:
        async with (
            a_place(tmp_path, monkeypatch) as place,
            place.connect("writer", "writes") as writer,
        ):
            await until(lambda: len(writer.preprocessors) == 1)
            link = place.node._connections.links["writer"]
            first = place.node._connections.permissions_of(link)
            assert first is not None
            await until(lambda: time.time() > first.expires + 1.0)
            assert place.node._connections.links["writer"] is link
            assert len(place.seen) == 1
            monkeypatch.setattr(writer.preprocessors, "_send", lambda _: False)
            await until(lambda: "writer" not in place.node._connections.links)

    running(work)


def test_a_key_that_is_not_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The agent gets no tags, and does not try with its token; the rendezvous point tags."""

    async def work() -> None:
        async with (
            a_place(tmp_path, monkeypatch, key=OTHER_PRIVATE) as place,
            place.connect("writer", "writes") as writer,
            writer.subscribe("n > 3") as told,
        ):
            await writer.publish({"n": 5}, b"5")
            assert await payloads(told, 1) == [b"5"]
            await until(lambda: place.seen)
            hello, found = place.seen[0]
            assert not hello.token
            assert found == (
                "the ticket is signed with a key that is not known here; expected one of the keys "
                "in [tickets]: edge"
            )

    running(work)


def make(private: str = PRIVATE, **changes: object) -> bytes:
    ticket = Ticket(b"", "milan", "milan", "fx", int(time.time()) + 200, ("publish",))
    return Signer(private).sign_ticket(msgspec.structs.replace(ticket, **changes))


def test_what_is_refused() -> None:
    keys, now = PublicKeys({"edge": PUBLIC}), time.time()

    def judge(data: bytes, name: str = "milan") -> Ticket | str:
        return keys.judge_ticket(data, name, "fx", now)

    assert judge(make()) == unpack_ticket(make())
    altered = bytearray(make())
    altered[-3] ^= 1
    found = {
        judge(b""), judge(b"x" * 90), judge(make(OTHER_PRIVATE)), judge(bytes(altered)),
        judge(make(), "turin"), judge(make(channel="tea")), judge(make(expires=int(now) - 100)),
        judge(make(expires=int(now) + 3600)),
    }  # fmt: skip
    assert all(isinstance(one, str) for one in found)
    for sentence in ("0 bytes that are not a ticket", "a key that is not known here",
                     "is for 'milan', but 'turin' shows it", "for the channel 'tea', expected 'fx'",
                     "expired 10", "expected at most 300"):  # fmt: skip
        assert any(sentence in str(one) for one in found), sentence
    with pytest.raises(KeyProblem, match="signing tickets, but no tokens"):
        tickets.Tickets("edge", Door(ticket_key=PRIVATE))


def test_names_that_are_bound() -> None:
    """A guest of a router does not get the name that is bound here; rights are those of both."""
    register = PermissionRegister(
        {"t": TokenRights("milan", frozenset({"subscribe"}), within="n > 1")}
    )
    guest = Ticket(b"", "milan", "*/abc", "fx", 1, ("publish", "subscribe"))
    assert "bound to another token" in str(register.admit_ticket(guest))
    bound = Ticket(b"", "milan", "milan", "fx", 1, ("publish", "subscribe"), "n > 0")
    found = register.admit_ticket(bound)
    assert isinstance(found, Permissions)
    assert found.may == {"subscribe"}
    assert (found.within, found.owner) == ("n > 1", "milan")
    other = register.admit_ticket(msgspec.structs.replace(guest, name="turin"))
    assert isinstance(other, Permissions)
    assert (other.owner, other.bound) == ("*/abc", False)


def test_files(tmp_path: Path) -> None:
    key = write_secret(tmp_path / "edge.key", PRIVATE)
    start = 'name = "edge"\nlisten = "127.0.0.1:0"\nupstream = "127.0.0.1:1"\n'
    path = write_secret(tmp_path / "edge.toml", f'{start}ticket_key = "{key.name}"\n')
    with pytest.raises(ConfigError, match=r"found ticket_key and no \[tokens\]"):
        load_config(path)
    path.write_text(f'{start}ticket_key = "{key.name}"\n[tokens]\na = "b"\n')
    assert load_config(path).ticket_secret == PRIVATE
    key.write_text(PUBLIC)
    with pytest.raises(ConfigError, match="ticket_key: found a key of the other kind"):
        load_config(path)
    path.write_text(f'{start}[tickets]\nedge = "x"\n')
    with pytest.raises(ConfigError, match="tickets: edge: found other text"):
        load_config(path)


ROOT = """
name = "root"
listen = "127.0.0.1:0"
journal = "journal.db"
ticket_key = "the root.key"
[tokens]
tags = {name = "tagger", may = ["subscribe", "preprocess"]}
writes = {name = "writer", may = ["publish", "subscribe", "preprocess"]}
"""


def test_processes(tmp_path: Path) -> None:
    made = subprocess.run(
        [sys.executable, "-m", "tidings", "key", str(tmp_path / "the root.key")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    root = Process(tmp_path, "root", ROOT)
    assert made.stdout.startswith('"the root" = "ed25519:')
    agents = write_secret(tmp_path / "agents.toml", f"[tickets]\n{made.stdout}")
    tagger = Forked(
        [sys.executable, "-m", "tidings", "preprocessor", f"tidings://127.0.0.1:{root.port}",
         "--name", "tagger", "--token", "tags", "--config", str(agents)],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert tagger.stdout is not None
    assert tagger.stdout.readline().startswith("the preprocessor listens on")

    async def work() -> None:
        there = f"tidings://127.0.0.1:{root.port}"
        async with (
            connect(there, name="writer", token="writes", tag="preprocessor") as writer,
            writer.subscribe("n > 3") as told,
        ):
            await until(lambda: len(writer.preprocessors) == 1)
            await writer.publish({"n": 5}, b"5")
            assert await payloads(told, 1) == [b"5"]
            assert writer.preprocessors.asked == 1

    try:
        asyncio.run(work())
    finally:
        tagger.terminate()
        tagger.communicate()
        assert root.stop() == 0
