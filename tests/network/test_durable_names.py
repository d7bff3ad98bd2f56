"""Names of durable subscriptions: equal filters, a second program with the same name, and names
that are given up."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.broker.networks import FAST, at, payloads, running, started, stopped

from tidings import Refusal, connect
from tidings.routing.clients import Interrupted


def test_an_equal_filter_is_the_same(tmp_path: Path) -> None:
    async def work() -> None:
        network = await started(tmp_path, 1)
        root, (edge,) = network
        async with connect(at(edge), times=FAST, name="reader") as agent:
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
        async with connect(at(edge), times=FAST) as nobody:
            with pytest.raises(Refusal, match="an agent without a name or a token"):
                await nobody.drop_named("mine")
        await stopped(network)

    running(work)


def test_a_second_program_takes_the_name_over(tmp_path: Path) -> None:
    """The first is told once, and does not come back."""

    async def work() -> None:
        network = await started(tmp_path, 1)
        edge = network[1][0]
        said: list[str] = []
        async with connect(at(edge), times=FAST, name="reader", on_link=said.append) as first:
            async with (
                first.subscribe("n > 0", name="mine") as told,
                connect(at(edge), times=FAST, name="reader") as second,
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
