"""A neighbour that vanishes without closing its connection is noticed, because it is silent."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.broker.networks import BRIEF, running, started, stopped
from tests.waiting import until

from tidings.broker import RouterNode
from tidings.broker.admission.listen import Address, Door
from tidings.model import EnvironmentProblem
from tidings.network.agent import connect
from tidings.routing.protocol import frames, messages as m


class Mute:
    """It lets everybody in and says nothing."""

    async def __aenter__(self) -> Mute:
        self.met = self._here = 0
        self._server = await asyncio.start_server(self._meet, "127.0.0.1", 0)
        self.port = int(self._server.sockets[0].getsockname()[1])
        return self

    async def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.met += 1
        self._here += 1
        await reader.read()
        writer.close()
        await writer.wait_closed()
        self._here -= 1

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        await until(lambda: not self._here)


def test_nobody_greets_an_agent(tmp_path: Path) -> None:
    async def work() -> None:
        async with Mute() as mute:
            with pytest.raises(EnvironmentProblem, match="does not answer"):
                async with connect(f"tidings://127.0.0.1:{mute.port}", times=BRIEF):
                    pass

    running(work)


def test_nobody_greets_a_router(tmp_path: Path) -> None:
    async def work() -> None:
        async with Mute() as mute:
            router = RouterNode("r", Address("127.0.0.1", mute.port), Door(), times=BRIEF)
            await router.start()
            await until(lambda: mute.met >= 2)  # it tries again
            await router.stop()

    running(work)


def test_a_neighbour_that_says_nothing_any_more(tmp_path: Path) -> None:
    async def work() -> None:
        network = await started(tmp_path, 1, BRIEF)
        reader, writer = await asyncio.open_connection("127.0.0.1", network[0].port)
        writer.write(frames.encode(m.Hello("mute")))
        await until(lambda: "mute" in network[0].links)
        await until(lambda: "mute" not in network[0].links)
        while await reader.read(1000):
            pass
        assert "r0" in network[0].links  # it speaks
        writer.close()
        await writer.wait_closed()
        await stopped(network)

    running(work)
