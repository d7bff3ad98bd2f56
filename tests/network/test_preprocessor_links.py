"""The links of an agent to preprocessors, against servers that count connections."""

from __future__ import annotations

import asyncio

import pytest
from tests.broker.networks import FAST, running

from tidings.network import Preprocessors
from tidings.network.agents.tags.preprocessors import FIRST
from tidings.routing.protocol import messages as m


@pytest.mark.parametrize("closed", [False, True])
def test_nothing_is_connected_after_the_end(closed: bool) -> None:
    """An agent that ends while it tries one of four preprocessors tries no other."""
    known: list[Preprocessors] = []
    tried: list[int] = []

    def answer(message: m.Message) -> bool:
        if isinstance(message, m.Identify):
            known[0].take_ticket(m.Identified(message.request))
        return True

    async def take(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tried.append(1)
        if closed:
            known[0].close()
        writer.close()

    async def work() -> None:
        servers = [await asyncio.start_server(take, "127.0.0.1", 0) for _ in range(4)]
        ports = [one.sockets[0].getsockname()[1] for one in servers]
        known.append(Preprocessors(answer, m.Hello("reader"), FAST))
        addresses = tuple(f"tidings://127.0.0.1:{port}/" for port in ports)
        await known[0].receive(m.Found(epoch=1, request=FIRST, addresses=addresses))
        for one in servers:
            one.close()
            await one.wait_closed()
        assert len(tried) == (1 if closed else 4)

    running(work)
