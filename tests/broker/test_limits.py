"""The bounds of running nodes: strangers, neighbours that do not read, names, tokens, floods."""

from __future__ import annotations

import asyncio
import logging
import random
from pathlib import Path

import msgspec
import pytest
from tests.broker.fuzzing import Senseless
from tests.broker.networks import FAST, at, payloads, running
from tests.waiting import until

from tidings.broker import RootNode, RouterNode
from tidings.broker.admission.connection_limits import TURN
from tidings.broker.admission.listen import Address, Door
from tidings.broker.admission.permissions import TokenRights
from tidings.broker.config import ConfigError, load_config, make_node
from tidings.network.agent import Refusal, connect
from tidings.routing.protocol import frames, messages as m
from tidings.routing.protocol.limits import Limits


class Raw:
    """A connection that says what it likes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def made(cls, node: RootNode | RouterNode) -> Raw:
        return cls(*await asyncio.open_connection("127.0.0.1", node.port))

    async def say(self, *messages: m.Message) -> None:
        self.writer.write(b"".join(frames.encode(one) for one in messages))
        await self.writer.drain()

    async def heard(self, seconds: float = 10.0) -> list[m.Message]:
        """All until the other end is done; nothing is said for a while otherwise."""
        data = b""
        try:
            async with asyncio.timeout(seconds):
                while more := await self.reader.read(1 << 16):
                    data += more
        except (TimeoutError, ConnectionError):
            pass
        self.close()
        return [frames.decode(data, start) for start in frames.split(data)[0]]

    async def is_open(self, seconds: float) -> bool:
        """Whether the other end does not close it within this time."""
        try:
            async with asyncio.timeout(seconds):
                while await self.reader.read(1 << 16):
                    pass
        except TimeoutError:
            return True
        except ConnectionError:
            pass
        return False

    def close(self) -> None:
        self.writer.close()
        self.writer.transport.abort()


async def a_root(folder: Path, limits: Limits | None = None, **door: object) -> RootNode:
    place = Door(limits=limits or Limits(), **door)  # type: ignore[arg-type]
    root = RootNode("root", folder / "journal.db", place, times=FAST)
    await root.start()
    return root


def test_strangers_make_room_for_the_next(tmp_path: Path) -> None:
    async def work() -> None:
        root = await a_root(tmp_path, Limits(strangers=20))
        silent = [await Raw.made(root) for _ in range(60)]
        await until(lambda: root.connection_limits.counts["too many strangers"] == 40)
        assert len(root.connection_limits) == 20
        async with connect(at(root), times=FAST) as agent:  # somebody who says its name
            await agent.publish({"n": 1})
        assert not any([await one.is_open(30) for one in silent[:41]])
        assert all([await one.is_open(0.1) for one in silent[41:]])
        for one in silent:
            one.close()
        await root.stop()

    running(work)


def test_strangers_do_not_fill_a_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Each line was one at least, ten of them a second as warnings, and up to 1 KB long."""
    caplog.set_level(logging.INFO)

    async def work() -> None:
        root = await a_root(tmp_path, tokens={"secret": "a"})
        for _ in range(30):
            one = await Raw.made(root)
            await one.say(m.Hello("\U000e0001" * 80, token="no"))
            await one.heard()
        assert root.connection_limits.counts["greeting"] == 30
        said = [one.getMessage() for one in caplog.records if "a stranger" in one.getMessage()]
        assert len(said) == 1
        assert len(said[0]) < 400
        await root.stop()

    running(work)


def test_strangers_say_little(tmp_path: Path) -> None:
    async def work() -> None:
        root = await a_root(tmp_path, Limits(greeting_bytes=500))
        one = await Raw.made(root)
        await one.say(m.Hello("a", "", "x" * 1000))
        (goodbye,) = await one.heard()
        assert isinstance(goodbye, m.Goodbye)
        assert "expected at most 500" in goodbye.reason
        assert root.refusals() == {"bad frame": 1}
        await root.stop()

    running(work)


def test_so_many_neighbours(tmp_path: Path) -> None:
    async def work() -> None:
        root = await a_root(tmp_path, Limits(neighbours=3))
        for number in range(20):  # names of which nothing stays but the name
            one = await Raw.made(root)
            await one.say(m.Hello(f"n{number}"), m.Redraw(0))
            await one.reader.readexactly(1)
            one.close()
            await until(lambda: not root.links)
            assert len(root.machine.neighbours) <= 3
        stay = [await Raw.made(root) for _ in range(3)]
        for number, one in enumerate(stay):
            await one.say(m.Hello(f"s{number}"))
            await one.reader.readexactly(1)
        with pytest.raises(Refusal, match="there are 3 neighbours, expected at most 3"):
            async with connect(at(root), times=FAST):
                pass
        again = await Raw.made(root)
        await again.say(m.Hello("s1"))  # one that is known comes back
        await again.reader.readexactly(1)
        for one in (*stay, again):
            one.close()
        await root.stop()

    running(work)


async def _come(root: RootNode, token: str, name: str, *, routes: bool = False) -> tuple[Raw, str]:
    """One that comes; why it may not, or nothing."""
    one = await Raw.made(root)
    await one.say(m.Hello(name, token=token, routes=routes))
    head = await asyncio.wait_for(one.reader.readexactly(4), 10)
    found = frames.decode(head + await one.reader.readexactly(int.from_bytes(head, "little")))
    return one, found.reason if isinstance(found, m.Goodbye) else ""


def test_one_token_does_not_take_the_places_of_others(tmp_path: Path) -> None:
    """Of 40 places, a token of guests gets 20, guests together 34, agents 38."""

    async def work() -> None:
        tokens: dict[str, str | TokenRights] = {
            "one": "*", "two": "*", "route": TokenRights("edge", frozenset({"route"})),
            **{f"of {n}": f"bound-{n}" for n in range(10)},
        }  # fmt: skip
        root = await a_root(tmp_path, Limits(neighbours=40), tokens=tokens)
        here: list[Raw] = []

        async def fill(token: str, names: str) -> tuple[int, str]:
            for count in range(50):
                one, reason = await _come(root, token, f"{names}{count}")
                here.append(one)
                if reason:
                    return count, reason
            raise AssertionError("there was no end of it")

        assert await fill("one", "a") == (
            20, "there are 20 guests with this token, expected at most 20"
        )  # fmt: skip
        count, reason = await fill("two", "b")
        assert (count, reason) == (
            14,
            "there are 34 guests, expected at most 34: the other places are for bound names",
        )
        found = [await _come(root, f"of {n}", f"bound-{n}") for n in range(5)]
        here += [one for one, _ in found]
        assert [reason for _, reason in found] == ["", "", "", "", (
            "there are 38 agents, expected at most 38: the other places are for routers"
        )]  # fmt: skip
        for name in ("a3", "bound-2"):  # who is here may come back
            again, reason = await _come(root, "one" if name == "a3" else "of 2", name)
            here.append(again)
            assert reason == ""
        edge, reason = await _come(root, "route", "edge", routes=True)
        assert reason == ""
        here[0].close()  # and who leaves makes room
        await until(lambda: "a0" not in root.links)
        late, reason = await _come(root, "one", "late")
        assert reason == ""
        for one in (*here, edge, late):
            one.close()
        await root.stop()

    running(work)


def test_names_of_other_tokens(tmp_path: Path) -> None:
    async def work() -> None:
        root = await a_root(tmp_path, tokens={"any": "*", "edges": "edge"})
        with pytest.raises(Refusal, match="the name 'edge' is bound to another token"):
            async with connect(at(root), name="edge", token="any"):
                pass
        async with connect(at(root), name="edge", token="edges"):
            pass
        await root.stop()

    running(work)


def test_without_a_token_nothing_is_readable_or_writable(tmp_path: Path, seed: int) -> None:
    async def work() -> None:
        tokens: dict[str, str | TokenRights] = {
            "secret": "*",
            "edges": TokenRights("edge", frozenset({"route"})),
        }
        root = await a_root(tmp_path, tokens=tokens)
        above = Address("127.0.0.1", root.port)
        edge = RouterNode("edge", above, Door(tokens=tokens), times=FAST, token="edges")
        await edge.start()
        chance = random.Random(seed)
        async with (
            connect(at(edge), times=FAST, token="secret") as agent,
            agent.subscribe("n >= 0") as told,
        ):
            await agent.publish({"n": 1}, b"secret payload")
            assert await payloads(told, 1) == [b"secret payload"]
            epoch, serial = root.machine.epoch, root.machine.serial
            known = {one: set(one.machine.neighbours) for one in (root, edge)}
            nodes = {one: set(one.machine.graph) for one in (root, edge)}
            senseless = Senseless(chance)
            senseless.epoch = epoch
            for node in (root, edge):
                for _ in range(60):
                    one = await Raw.made(node)
                    greeting = [m.Hello("agent", "", chance.choice(("", "Secret", "secret ")))]
                    rest = [senseless.message() for _ in range(10)]
                    asks: list[m.Message] = [
                        m.Subscribe(epoch, (1,)), m.Recover(epoch, 1, (m.Range(1, 1, 9),)),
                        m.Redraw(epoch), m.Count(epoch, 1, 1), m.Ask(1, b"n > 5"),
                        m.Publish("p", 1, 1, b'{"n": 5}', b"forged"),
                    ]  # fmt: skip
                    chance.shuffle(asks)
                    start = greeting if chance.random() < 0.5 else []
                    await one.say(*start, *asks, *rest)
                    (answer,) = await one.heard()
                    assert isinstance(answer, m.Goodbye)
            for node in (root, edge):
                assert set(node.machine.neighbours) == known[node]
                assert set(node.machine.graph) == nodes[node]
                assert node.refused == 60
            assert root.machine.serial == serial
            await agent.publish({"n": 2}, b"next")
            assert await payloads(told, 1) == [b"next"]
        await edge.stop()
        await root.stop()

    running(work)


def test_whoever_asks_and_does_not_read(tmp_path: Path) -> None:
    """It is answered until a little waits; what is left for it goes when it is cut off."""

    async def work() -> None:
        root = await a_root(tmp_path, Limits(unread_bytes=50_000))
        async with (
            connect(at(root), times=FAST) as agent,
            agent.subscribe("n >= 0") as told,
        ):
            for _ in range(100):
                agent.publish_soon({"n": 1}, b"x" * 10_000)
            await payloads(told, 100)
            (node,) = root.machine.graph
            one = await Raw.made(root)
            one.writer.transport.pause_reading()  # type: ignore[attr-defined]
            epoch = root.machine.epoch
            await one.say(m.Hello("greedy"))
            for number in range(300):
                await one.say(m.Recover(epoch, number, (m.Range(node, 1, 100),)))
            await until(lambda: root.machine.beyond["unread_bytes"] > 100)
            link = root.links["greedy"]
            assert link.waiting < 3_000_000  # some answers, not hundreds of a megabyte
            await agent.publish({"n": 2}, b"others go on")
            assert await payloads(told, 1) == [b"others go on"]
            one.close()
        await root.stop()

    running(work)


def test_all_queues_together(tmp_path: Path) -> None:
    async def work() -> None:
        root = await a_root(tmp_path, Limits(all_queues_bytes=3_000_000))
        ones = [await Raw.made(root) for _ in range(4)]
        half = frames.encode(m.Publish("p", 1, 1, b"", b"x" * 2_000_000))
        for number, one in enumerate(ones):
            await one.say(m.Hello(f"n{number}"))
            one.writer.write(half[: 1_200_000 + number])
            await one.writer.drain()
        await until(lambda: len(root.links) == 2)
        assert sum(root.connection_limits.counts.values()) == 2
        for one in ones:
            one.close()
        await root.stop()

    running(work)


def test_neighbours_that_say_nothing_whole(tmp_path: Path) -> None:
    async def work() -> None:
        hasty = msgspec.structs.replace(FAST, expire=0.5)
        root = RootNode("root", tmp_path / "journal.db", Door(), times=hasty)
        await root.start()
        one = await Raw.made(root)
        await one.say(m.Hello("slow"))
        await until(lambda: "slow" in root.links)
        rest = iter(frames.encode(m.Publish("p", 1, 1, b"", b"x" * 20_000)))

        async def send_a_byte() -> None:  # a byte now and then is not a word
            one.writer.write(bytes([next(rest)]))

        await until(lambda: "slow" not in root.links, doing=send_a_byte)
        assert root.refusals() == {"no complete message arrived in time": 1}
        one.close()
        await root.stop()

    running(work)


def test_the_more_speak_the_less_of_each_is_read_at_once(tmp_path: Path) -> None:
    async def work() -> None:
        root = await a_root(tmp_path)
        ones = [await Raw.made(root) for _ in range(5)]
        for number, one in enumerate(ones):
            await one.say(m.Hello(f"n{number}"))
        await until(lambda: len(root.links) == 5)

        def at_once() -> set[int]:
            return {link._transport.max_size for link in root.links.values()}  # type: ignore[union-attr]

        await until(lambda: at_once() == {TURN})  # nobody speaks

        async def speak() -> None:
            for one in ones:
                await one.say(m.Redraw(0))

        await until(lambda: at_once() == {TURN // 5}, doing=speak)
        router = await Raw.made(root)
        await router.say(m.Hello("router", routes=True))  # of it as much as ever
        ones.append(router)
        await until(lambda: at_once() == {TURN // 6, TURN}, doing=speak)
        await until(lambda: at_once() == {TURN})
        for one in ones:
            one.close()
        await root.stop()

    running(work)


def test_one_above_that_does_not_read(tmp_path: Path) -> None:
    """A router does not collect what it can't pass on: its neighbours wait."""

    async def work() -> None:
        slow: list[asyncio.StreamWriter] = []
        go_on = asyncio.Event()

        async def above(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            slow.append(writer)
            writer.write(frames.encode(m.Welcome("above")))
            await go_on.wait()
            writer.write(frames.encode(m.Credit({0: 1 << 40})))
            while await reader.read(1 << 16):
                pass

        server = await asyncio.start_server(above, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        edge = RouterNode("edge", Address("127.0.0.1", port), Door(), times=FAST)
        await edge.start()
        await until(lambda: "<upstream>" in edge.links)
        one = await Raw.made(edge)
        await one.say(m.Hello("loud"))
        link = edge.links["<upstream>"]
        payload = b"x" * 100_000
        said = 0

        async def speak() -> None:
            nonlocal said
            for said in range(10_000):
                await one.say(m.Publish("p", said + 1, 1, b"{}", payload))

        with pytest.raises(TimeoutError):
            await asyncio.wait_for(speak(), 1.5)
        assert edge.links["loud"].paused
        assert link.waiting < 4_000_000
        assert said < 500
        go_on.set()
        await until(lambda: not edge.links["loud"].paused)
        one.close()
        await edge.stop()
        for writer in slow:
            writer.transport.abort()
        server.close()

    running(work)


def test_a_flood_of_wanted_nodes_is_not_looked_at(tmp_path: Path) -> None:
    """Each was split into pieces before anybody asked whether something would be done about it."""

    async def work() -> None:
        root = await a_root(tmp_path, Limits(burst=50_000, work=1))
        put: list[m.Message] = []
        root.backlog.put = lambda link, message: put.append(message)  # type: ignore[method-assign]
        epoch, nodes = root.machine.epoch, tuple(range(40_000))
        one = await Raw.made(root)
        await one.say(m.Hello("a"), *[m.Wanted(epoch + 1, nodes)] * 10)
        await one.say(*[m.Wanted(epoch, nodes)] * 100)
        await until(lambda: root.machine.beyond["work"])
        await one.say(m.Redraw(epoch))
        await until(lambda: m.Redraw(epoch) in put)
        assert len([one for one in put if isinstance(one, m.Wanted)]) <= 21
        assert {one.epoch for one in put if isinstance(one, m.Wanted)} == {epoch}
        one.close()
        await root.stop()

    running(work)


def test_nobody_says_at_once_that_it_wants_millions(tmp_path: Path) -> None:
    async def work() -> None:
        root = await a_root(tmp_path)
        one = await Raw.made(root)
        wanted = m.Wanted(root.machine.epoch, (0,) * (m.MOST_WANTED + 1))
        await one.say(m.Hello("a"), wanted)
        (*_, last) = await one.heard()
        assert isinstance(last, m.Goodbye)
        assert str(m.MOST_WANTED) in last.reason
        await root.stop()

    running(work)


@pytest.mark.parametrize("limit", ["nodes = 0", "nodes = 'many'", "colour = 5"])
def test_limits_in_a_file(tmp_path: Path, limit: str) -> None:
    text = 'name = "r"\nlisten = "127.0.0.1:0"\nupstream = "127.0.0.1:7400"\n[limits]\n'
    path = tmp_path / "r.toml"
    path.write_text(text + "neighbours = 7\nframe_bytes = 1000")
    node = make_node(load_config(path))
    assert (node.limits.neighbours, node.machine.limits.frame_bytes) == (7, 1000)
    path.write_text(text + limit)
    with pytest.raises(ConfigError, match=r"limits|colour"):
        load_config(path)


def test_the_limits_that_the_docs_tell() -> None:
    text = (Path(__file__).parents[2] / "docs" / "security.md").read_text()
    section = text.split("## Limits")[1].split("\n## ")[0]
    rows = [line.split("|") for line in section.splitlines() if line.startswith("| `")]
    told = {row[1].strip(" `"): int(row[2]) for row in rows}
    assert told == msgspec.structs.asdict(Limits())
