"""A rendezvous point whose journal can't be written for a while, in one process."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.broker.networks import BRIEF, at, payloads, running, started, stopped
from tests.waiting import until

from tidings.broker.config import load_config, make_node
from tidings.broker.root_node import TEND_PAUSE, RootNode
from tidings.model import EnvironmentProblem
from tidings.network.agent import Refusal, connect
from tidings.store.journal import FileJournal
from tidings.store.journal.log_segments import LogSegment


def test_errors_while_nothing_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def can_not(*_: object) -> None:
        raise EnvironmentProblem("the journal can't be written")

    async def work() -> None:
        network = await started(tmp_path, 1, BRIEF)
        root, (router,) = network
        async with connect(at(router), times=BRIEF) as agent, agent.subscribe("n >= 0") as told:
            await agent.publish({"n": 1}, b"1")
            with monkeypatch.context() as broken:
                broken.setattr(FileJournal, "write", can_not)
                broken.setattr(FileJournal, "revive", can_not)
                for _ in range(2):
                    with pytest.raises(Refusal, match="the journal can't be written"):
                        await agent.publish({"n": 2}, b"2")
                with pytest.raises(Refusal, match="the journal can't be written"):
                    async with agent.subscribe("n >= 1"):
                        pass
                neighbours, late = root.machine.neighbours, root.now + 2 * BRIEF.silent
                # it beats, and is heard
                await until(lambda: any(one.heard > late for one in neighbours.values()))
            await until(lambda: not root.machine.failed)
            await agent.publish({"n": 3}, b"3")
            assert await payloads(told, 2) == [b"1", b"3"]
            async with agent.subscribe("n >= 1"):
                pass
        await stopped(network)

    running(work)


def test_a_write_soon_after_a_check_is_followed_by_another_check() -> None:
    """Otherwise, work that becomes due with the last write would wait for the next frame."""
    checks: list[int] = []  # how many writes had ended
    writes: list[int] = []
    root = object.__new__(RootNode)
    root._checked = root._tended = float("-inf")
    root._check = root._tending = None
    fakes = {"_recompiling": SimpleNamespace(tend=lambda _: checks.append(len(writes))),
             "_interests": None, "journal": SimpleNamespace(is_due=False)}  # fmt: skip
    vars(root).update(fakes)

    async def work() -> None:
        for number in range(5):
            writes.append(number)
            root._tend()
        assert len(checks) == 1
        await until(lambda: len(checks) == 2)
        assert checks[1] == 5
        await asyncio.sleep(3 * TEND_PAUSE)
        assert len(checks) == 2  # one check for all of them

    running(work)


def test_the_budget_of_the_disk_is_a_setting(tmp_path: Path) -> None:
    """Beyond it publications are refused with its name; those before it are there."""
    path = tmp_path / "root.toml"
    path.write_text(
        'name = "root"\nlisten = "127.0.0.1:0"\njournal = "journal"\n'
        "[limits]\ndisk_bytes = 1000000\nkept_bytes = 5000000\nkept_seconds = 60\n"
    )

    async def work() -> None:
        root = make_node(load_config(path))
        assert isinstance(root, RootNode)
        kept = root.journal.retention
        assert (kept.disk_bytes, kept.bytes, kept.seconds) == (1_000_000, 5_000_000, 60)
        await root.start()
        async with connect(at(root), times=BRIEF) as agent, agent.subscribe("n >= 0") as told:
            taken: list[bytes] = []

            async def fill() -> None:
                for n in range(10, 30):
                    payload = b"%d" % n * 50_000
                    await agent.publish({"n": n}, payload)
                    taken.append(payload)

            with pytest.raises(Refusal, match=r"expected at most 1,000,000, .*disk_bytes"):
                await fill()
            assert 5 < len(taken) < 15
            assert await payloads(told, len(taken)) == taken
        await root.stop()

    running(work)


def test_nothing_is_written_after_what_could_not_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even by a mistake that nobody thought of: those behind it would be acknowledged."""

    async def work() -> None:
        network = await started(tmp_path, 0, BRIEF)

        def once(*_: object) -> None:
            monkeypatch.undo()
            raise ZeroDivisionError

        async with (
            connect(at(network[0]), times=BRIEF) as agent,
            agent.subscribe("n >= 0") as told,
        ):
            monkeypatch.setattr(LogSegment, "add", once)
            first = agent.publish_soon({"n": 1}, b"1")
            await asyncio.sleep(0)
            done = await asyncio.gather(
                first, *(agent.publish_soon({"n": n}, b"%d" % n) for n in range(2, 50)),
                return_exceptions=True,
            )  # fmt: skip
            taken = [b"%d" % n for n, one in enumerate(done, start=1) if isinstance(one, int)]
            assert isinstance(done[0], Refusal)
            await until(lambda: not network[0].machine.failed)
            await agent.publish({"n": 50}, b"50")
            assert await payloads(told, len(taken) + 1) == [*taken, b"50"]
        await stopped(network)

    running(work)


def test_an_agent_that_is_started_again_under_its_name(tmp_path: Path) -> None:
    """Its first publication is not one that came before."""

    async def work() -> None:
        network = await started(tmp_path, 1, BRIEF)
        router = network[1][0]
        async with connect(at(router), times=BRIEF) as reader, reader.subscribe("n >= 0") as told:
            for payload in (b"1", b"2"):
                async with connect(at(router), name="ana", times=BRIEF) as agent:
                    await agent.publish({"n": 1}, payload)
            assert await payloads(told, 2) == [b"1", b"2"]
        await stopped(network)

    running(work)


def test_kernels_that_could_not_be_loaded_are_loaded_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tries: list[int] = []

    def load() -> None:
        tries.append(1)
        if len(tries) < 3:
            raise OSError("no space left on device")

    async def work() -> None:
        network = await started(tmp_path, 0, BRIEF)
        await until(lambda: len(tries) == 3)
        await until(lambda: network[0]._takes_parts)
        await stopped(network)

    monkeypatch.setattr("tidings.broker.root_node.load_block_kernels", load)
    monkeypatch.setattr("tidings.broker.root_node.LOAD_AGAIN", 0.01)
    running(work)
    assert "can't load the kernels for parts" in caplog.text
