"""Names of durable subscriptions: equal filters, a second program with the same name, at one
router or at two, and names that are given up."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest
from tests.broker.networks import BRIEF, at, payloads, running, started, stopped
from tests.broker.processes import Process

from tidings import Refusal, connect
from tidings.network.agent import Agent
from tidings.routing.clients import Delivery, Interrupted
from tidings.routing.protocol.lineage import Break

pytestmark = pytest.mark.usefixtures("forked")


def test_an_equal_filter_is_the_same(tmp_path: Path) -> None:
    async def work() -> None:
        network = await started(tmp_path, 1, BRIEF)
        root, (edge,) = network
        async with connect(at(edge), times=BRIEF, name="reader") as agent:
            async with agent.subscribe("n > 5 AND a = 'x'", name="mine"):
                pass
            await agent.publish({"n": 7, "a": "x"}, b"7")
            async with agent.subscribe("NOT (a <> 'x' OR n <= 5)", name="mine") as told:
                assert await payloads(told, 1) == [b"7"]
            said = (
                r"^found another filter for the name 'mine', expected one that equals \"n > 5 AND "
                r"a = 'x'\"; drop the name first, with `tidings subscribe --durable mine --drop`$"
            )
            with pytest.raises(Refusal, match=said):
                await agent.subscribe("n > 6", name="mine").__aenter__()
            await agent.drop_named("mine", 30)
            assert not root.machine.naming.cursors.known
            async with agent.subscribe("n > 6", name="mine"):
                assert len(root.machine.naming.cursors.known) == 1
            await agent.drop_named("unused", 30)
            assert len(root.machine.naming.cursors.known) == 1
        async with connect(at(edge), name="reader") as fresh:  # it knows nothing of the channel
            await fresh.drop_named("mine", 2)
            assert not root.machine.naming.cursors.known
        async with connect(at(edge), times=BRIEF) as nobody:
            with pytest.raises(Refusal, match="found a subscription or an agent without a name"):
                await nobody.drop_named("mine")
        await stopped(network)

    running(work)


def test_a_second_program_takes_the_name_over(tmp_path: Path) -> None:
    """The first is told once, and does not come back."""

    async def work() -> None:
        network = await started(tmp_path, 1, BRIEF)
        edge = network[1][0]
        said: list[str] = []
        async with connect(at(edge), times=BRIEF, name="reader", on_link=said.append) as first:
            async with (
                first.subscribe("n > 0", name="mine") as told,
                connect(at(edge), times=BRIEF, name="reader") as second,
                second.subscribe("n > 0", name="mine") as other,
            ):
                sentence = "another program has connected with the name 'reader', so this one"
                assert isinstance(await anext(told), Interrupted)
                with pytest.raises(Refusal, match=f"^{sentence} has ended$"):
                    await anext(told)
                await asyncio.sleep(1)  # longer than an agent waits before it connects again
                await second.publish({"n": 1}, b"1")
                assert await payloads(other, 1) == [b"1"]
                assert second.state.linked
            assert not first.state.linked
            assert len(said) == 1
            with pytest.raises(Refusal, match=sentence):
                await first.publish({"n": 2}, b"2")
            with pytest.raises(Refusal, match=sentence):
                await first.subscribe("n > 9").__aenter__()
        await stopped(network)

    running(work)


def test_a_journal_that_lost_what_was_confirmed(tmp_path: Path) -> None:
    """Serials and numbers of lost notifications are not taken for those that come later."""

    async def publish(agent: Agent, numbers: range) -> None:
        for n in numbers:
            await agent.publish({"n": n}, b"payload %d." % n)

    async def read(agent: Agent, name: str, last: int) -> list[object]:
        found: list[object] = []
        async with agent.subscribe("n > 0", name=name) as told:
            async for one in told:
                found.append(one.payload if isinstance(one, Delivery) else one)
                if found[-1] == b"payload %d." % last:
                    assert isinstance(one, Delivery)
                    await told.confirm(one, 30)
                    return found
        raise AssertionError("it ended")

    async def work() -> None:
        network = await started(tmp_path, 0, BRIEF)
        async with connect(at(network[0]), times=BRIEF, name="reader") as agent:
            for name in ("all", "some"):
                async with agent.subscribe("n > 0", name=name):
                    pass
            await publish(agent, range(1, 6))
            assert len(await read(agent, "some", 4)) == 4
            await publish(agent, range(6, 11))
            assert len(await read(agent, "all", 10)) == 10
        await stopped(network)
        (segment,) = (tmp_path / "journal.db").glob("*.log")
        data = bytearray(segment.read_bytes())
        for n in range(6, 11):
            data[data.index(b"payload %d." % n)] ^= 0xFF
        segment.write_bytes(data)
        for first in (11, 21):  # the second start is without a loss
            network = await started(tmp_path, 0, BRIEF)
            async with connect(at(network[0]), times=BRIEF, name="reader") as agent:
                await publish(agent, range(first, first + 8))
                new = [b"payload %d." % n for n in range(first, first + 8)]
                for name in ("all", "some"):
                    found = await read(agent, name, first + 7)
                    if first == 11:
                        assert isinstance(found.pop(0), Break)
                        assert name == "all" or found.pop(0) == b"payload 5."
                    assert found == new
            await stopped(network)

    running(work)


TAKEN = "the subscription 'mine' was continued by another program, or by another call of this one"


def test_a_second_program_at_another_router(tmp_path: Path) -> None:
    """It takes over this subscription only: the first is told when it confirms, or soon after the
    next notification."""

    async def work() -> None:
        network = await started(tmp_path, 2, BRIEF)
        near, far = network[1]
        async with (
            connect(at(near), times=BRIEF, name="reader") as first,
            first.subscribe("n > 0", name="mine") as told,
            first.subscribe("n > 0") as others,
            connect(at(far), times=BRIEF, name="reader") as second,
        ):
            await first.publish({"n": 1}, b"1")
            one = await told.next(30)
            async with second.subscribe("n > 0", name="mine") as taken:
                assert await payloads(taken, 1) == [b"1"]
                for _ in range(2):
                    with pytest.raises(Refusal, match=TAKEN):
                        await told.confirm(one, 30)  # type: ignore[arg-type]
                with pytest.raises(Refusal, match=TAKEN):
                    await anext(told)
                async with first.subscribe("n > 0", name="mine") as again:  # it takes it back
                    assert await payloads(again, 1) == [b"1"]
                    await second.publish({"n": 2}, b"2")
                    assert await payloads(again, 1) == [b"2"]
                    with pytest.raises(Refusal, match=TAKEN):
                        await payloads(taken, 2)  # it confirms nothing
            assert await payloads(others, 2) == [b"1", b"2"]
        await stopped(network)

    running(work)


def test_an_agent_that_moves_is_the_same(tmp_path: Path) -> None:
    """Its router ends, and it goes on at another one."""

    async def work() -> None:
        root, (near, far) = await started(tmp_path, 2, BRIEF)
        async with (
            connect([at(far), at(near)], times=BRIEF, name="reader") as agent,
            connect(at(root), times=BRIEF) as writer,
            agent.subscribe("n > 0", name="mine") as told,
        ):
            await writer.publish({"n": 1}, b"1")
            assert await payloads(told, 1) == [b"1"]
            await far.stop()
            for n in (2, 3):
                await writer.publish({"n": n}, b"%d" % n)
                while not hasattr(one := await anext(told), "payload"):
                    pass
                assert one.payload == b"%d" % n
                await told.confirm(one, 30)  # type: ignore[arg-type]
                await asyncio.sleep(BRIEF.expire)  # longer than it may be silent about its name
            assert agent.state.linked
        await stopped((root, [near]))

    running(work)


def test_processes_at_two_routers(tmp_path: Path) -> None:
    """A second command takes the name over, and the first one ends with the reason."""
    root = Process(tmp_path, "root", 'name = "root"\nlisten = "127.0.0.1:0"\njournal = "j"\n')
    text = 'name = "{}"\nlisten = "127.0.0.1:0"\nupstream = "127.0.0.1:{}"\n'
    edges = [Process(tmp_path, one, text.format(one, root.port)) for one in ("east", "west")]
    commands: list[subprocess.Popen[str]] = []
    try:
        for edge in edges:
            command = [sys.executable, "-m", "tidings", "subscribe", "n > 0", "--durable", "mine"]
            command += ["--router", f"tidings://127.0.0.1:{edge.port}"]
            commands.append(
                subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            )
            stderr = commands[-1].stderr
            assert stderr is not None
            while "subscribed to" not in (line := stderr.readline()):
                assert line

        async def publish() -> None:
            async with connect(f"tidings://127.0.0.1:{root.port}") as agent:
                await agent.publish({"n": 1}, b"one")

        asyncio.run(publish())
        first, second = commands
        assert second.stdout is not None
        assert second.stdout.readline() == "one\n"
        assert TAKEN in first.communicate(timeout=90)[1]
        assert first.returncode == 2
        assert second.poll() is None
    finally:
        for one in commands:
            one.kill()
            one.communicate()
        for node in (*edges, root):
            assert node.stop() == 0
