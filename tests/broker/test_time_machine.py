"""Journals that go back in time beneath a network that runs: processes of the rendezvous point are
killed, their files are put back or lost, and agents stay connected."""

from __future__ import annotations

import asyncio
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.broker.networks import BRIEF, at, payloads, started, stopped
from tests.damage import copy_hot
from tests.forking import Forked
from tests.waiting import until

from tidings.channel.interests import ArrayInterests
from tidings.channel.interests.nodes import Nodes
from tidings.network.agent import Agent, Broken, Refusal, Subscription, connect
from tidings.routing.clients import Interrupted, Resumed
from tidings.routing.clients.subscriber import Delivery, Lost, Phase
from tidings.routing.protocol import frames, messages as m
from tidings.routing.protocol.lineage import Break, StampRange
from tidings.studies.host.ports import free_ports

TIMES = "[times]\nbeat = 0.1\nresubscribe = 0.2\nretry = 0.2\nsilent = 1.0\nexpire = 30.0\n"


def running(work: object) -> None:
    asyncio.run(asyncio.wait_for(work, 240))  # type: ignore[arg-type]


class Root:
    """A rendezvous point as a process, which is killed and started again; a router is below it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "root"
        self.folder.mkdir()
        (self.port,) = free_ports(1)
        (self.folder / "root.toml").write_text(
            f'name = "root"\nlisten = "127.0.0.1:{self.port}"\njournal = "data/journal.db"\n{TIMES}'
        )
        self._edge = folder / "edge.toml"
        self._edge.write_text(
            f'name = "edge"\nlisten = "127.0.0.1:0"\nupstream = "127.0.0.1:{self.port}"\n{TIMES}'
        )
        self.start()
        self._below, line = _started(self._edge)
        self.edge = f"tidings://127.0.0.1:{line.rsplit(':', 1)[1].strip()}"

    def start(self) -> None:
        self._process, _ = _started(self.folder / "root.toml")

    def kill(self) -> None:
        _end(self._process, signal.SIGKILL)

    def stop(self) -> None:
        _end(self._below, signal.SIGTERM)
        _end(self._process, signal.SIGTERM)

    def back_up(self, name: str) -> None:
        """Of files that nobody writes to."""
        copy_hot(self.folder / "data", self.folder / name)

    def lose(self) -> None:
        shutil.rmtree(self.folder / "data")

    def put_back(self, name: str) -> None:
        self.lose()
        shutil.copytree(self.folder / name, self.folder / "data")


def _started(file: Path) -> tuple[subprocess.Popen[str], str]:
    process = Forked(
        [sys.executable, "-m", "tidings", "router", "--config", str(file)],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    line = process.stdout.readline()
    assert "listens on" in line
    return process, line


def _end(process: subprocess.Popen[str], how: signal.Signals) -> None:
    process.send_signal(how)
    process.communicate(timeout=120)


@contextmanager
def a_root(folder: Path) -> Iterator[Root]:
    root = Root(folder)
    try:
        yield root
    finally:
        root.stop()


async def publish(agent: Agent, numbers: range) -> list[int]:
    """Their stamps."""
    return [await agent.publish({"n": n}, b"%d" % n) for n in numbers]


async def told_until(subscription: Subscription, last: int) -> list[Delivery | Lost | Break]:
    found: list[Delivery | Lost | Break] = []
    async for one in subscription:
        if isinstance(one, Interrupted | Resumed):
            continue
        found.append(one)
        if isinstance(one, Delivery) and one.payload == b"%d" % last:
            break
    return found


async def on_again(told: Subscription, life: int) -> None:
    """Wait until a subscription is in force in another life: only then it gets everything."""
    machine = told._machine
    await until(lambda: machine.epoch != life and machine.phase is Phase.ON)


def numbers(found: list[Delivery | Lost | Break]) -> list[int]:
    return [int(one.payload) for one in found if isinstance(one, Delivery)]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("callback", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_journal_that_is_put_back(tmp_path: Path, callback: bool) -> None:
    breaks: list[Break] = []

    async def work(root: Root) -> None:
        on_break = breaks.append if callback else None
        async with (
            connect(root.edge, times=BRIEF) as reader,
            connect(root.edge, times=BRIEF, on_break=on_break) as writer,
            reader.subscribe("n >= 0") as told,
        ):
            assert await publish(writer, range(20)) == [*range(1, 21)]
            root.kill()
            root.back_up("backup")
            root.start()
            await publish(writer, range(20, 70))
            before = await told_until(told, 69)
            assert numbers(before) == [*range(70)]
            life = told._machine.epoch
            root.kill()
            root.put_back("backup")
            root.start()
            if callback:
                await until(lambda: bool(breaks))
                named = breaks[0].stamps
            else:
                await until(lambda: bool(writer._publisher.breaks))
                with pytest.raises(Broken, match="21-70") as problem:
                    await writer.publish({"n": 99}, b"99")
                named = problem.value.stamps
            assert named == (StampRange(21, 70),)
            await on_again(told, life)
            await publish(writer, range(100, 250))
            after = await told_until(told, 249)
            assert numbers(after) == [*range(100, 250)]
            assert isinstance(after[0], Break)
            assert [one for one in (*before, *after[1:]) if not isinstance(one, Delivery)] == []

    with a_root(tmp_path) as root:
        running(work(root))
    assert len(breaks) == callback


@pytest.mark.timeout(300)
def test_a_journal_that_is_lost_and_an_older_one_put_back(tmp_path: Path) -> None:
    breaks: list[Break] = []

    async def work(root: Root) -> None:
        async with (
            connect(root.edge, times=BRIEF) as reader,
            connect(root.edge, times=BRIEF, on_break=breaks.append) as writer,
            reader.subscribe("n >= 0") as told,
        ):
            await publish(writer, range(20))
            assert numbers(await told_until(told, 19)) == [*range(20)]
            life = told._machine.epoch
            root.kill()
            root.back_up("older")
            root.lose()
            root.start()
            await until(lambda: len(breaks) == 1)
            await on_again(told, life)
            await publish(writer, range(20, 30))
            found = await told_until(told, 29)
            assert isinstance(found[0], Break)
            assert numbers(found) == [*range(20, 30)]
            life = told._machine.epoch
            root.kill()
            root.put_back("older")
            root.start()
            await until(lambda: len(breaks) == 2)
            await on_again(told, life)
            await publish(writer, range(30, 180))
            found = await told_until(told, 179)
            assert isinstance(found[0], Break)
            assert numbers(found) == [*range(30, 180)]

    with a_root(tmp_path) as root:
        running(work(root))
    assert [one.stamps for one in breaks] == [(StampRange(1, 20),), (StampRange(21, 30),)]


@pytest.mark.timeout(300)
def test_kills_without_a_break(tmp_path: Path) -> None:
    breaks: list[Break] = []

    async def work(root: Root) -> None:
        async with (
            connect(root.edge, times=BRIEF) as reader,
            connect(root.edge, times=BRIEF, on_break=breaks.append) as writer,
            reader.subscribe("n >= 0") as told,
        ):
            for n in range(0, 150, 50):
                waiting = [writer.publish_soon({"n": m}, b"%d" % m) for m in range(n, n + 50)]
                await asyncio.sleep(0.01)
                root.kill()
                root.start()
                await asyncio.gather(*waiting)
            found: list[Delivery | Lost | Break] = []
            while len(found) < 150:
                one = await anext(told)
                if not isinstance(one, Interrupted | Resumed):
                    found.append(one)
            assert sorted(numbers(found)) == [*range(150)]
            await asyncio.sleep(1)
            inbox = told._machine.inbox
            assert not [one for one in inbox if not isinstance(one, Interrupted | Resumed)]

    with a_root(tmp_path) as root:
        running(work(root))
    assert not breaks


def test_a_stamp_that_another_router_made_up(tmp_path: Path) -> None:
    """The victim's next publications were acknowledged and dropped."""

    async def work() -> None:
        network = await started(tmp_path, 1, BRIEF)
        root, (router,) = network
        async with (
            connect(at(router), times=BRIEF) as reader,
            connect(at(router), name="ana", times=BRIEF) as ana,
            reader.subscribe("n >= 0") as told,
        ):
            await ana.publish({"n": 0}, b"0")
            victim = ana._publisher.name
            stream, writer = await asyncio.open_connection("127.0.0.1", root.port)
            forged = [m.Publish(victim, stamp, stamp, b"{}", b"")
                      for stamp in (2**62, 2**48, 100)]  # fmt: skip
            for one in (m.Hello("bad", routes=True), *forged, m.Trace(9)):
                writer.write(frames.encode(one))
            while b"lineage" not in await asyncio.wait_for(stream.read(1 << 16), 5):
                pass  # all of it was taken
            await publish(ana, range(1, 21))
            assert await payloads(told, 21) == [b"%d" % n for n in range(21)]
            unknown = m.Publish("eve", 2**62, 2**62, b"{}", b"")
            writer.write(frames.encode(unknown))
            await until(lambda: "eve" not in root.machine.publishers)
            writer.close()
            await writer.wait_closed()
        await stopped(network)

    running(work())


def test_a_mistake_while_matching(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is refused and logged; said again, it is taken; and nobody else is disturbed."""
    tag = ArrayInterests.tag

    def mistaken(self: ArrayInterests, content: bytes) -> list[int]:
        if b"13" in content:
            raise MemoryError("no room for 13")
        return tag(self, content)

    async def work() -> None:
        network = await started(tmp_path, 1, BRIEF)
        async with (
            connect(at(network[1][0]), times=BRIEF) as agent,
            agent.subscribe("n >= 0") as told,
        ):
            with monkeypatch.context() as broken:
                broken.setattr(ArrayInterests, "tag", mistaken)
                await publish(agent, range(3))
                with pytest.raises(Refusal, match="could not match the notification"):
                    await agent.publish({"n": 13}, b"13")
                waiting = [agent.publish_soon({"n": n}, b"%d" % n) for n in (3, 13, 4)]
                done = await asyncio.gather(*waiting, return_exceptions=True)
                assert [isinstance(one, int) for one in done] == [True, False, True]
            await agent.publish({"n": 13}, b"13")
            found = await payloads(told, 6)
            assert found == [b"0", b"1", b"2", b"3", b"4", b"13"]
        await stopped(network)

    running(work())
    assert "no room for 13" in caplog.text


def test_mistakes_while_filters_are_placed_and_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def work() -> None:
        network = await started(tmp_path, 1, BRIEF)
        async with (
            connect(at(network[1][0]), times=BRIEF) as agent,
            agent.subscribe("n >= 0") as told,
        ):

            def mistaken(*_: object) -> None:
                raise MemoryError("no room")

            with monkeypatch.context() as broken:
                broken.setattr(Nodes, "add", mistaken)
                with pytest.raises(Refusal, match="could not place the filter"):
                    async with agent.subscribe("n >= 1"):
                        pass
            async with agent.subscribe("n >= 1"):
                pass
            with monkeypatch.context() as broken:
                broken.setattr(ArrayInterests, "remove", mistaken)
                await until(lambda: "could not forget node" in caplog.text)
            await agent.publish({"n": 5}, b"5")
            assert await payloads(told, 1) == [b"5"]
        await stopped(network)

    running(work())
