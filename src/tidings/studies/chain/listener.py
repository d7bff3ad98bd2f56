"""A program that runs some of the agents of the chain, and records what they receive.

    python -c COMMAND FOLDER NAME

The program reads orders from stdin, one line of JSON each, and answers each with a line:

    subscribe   [agent, its router, interest]...     answered when all of them are in force
    count       []                                   returns the number of deliveries so far
    end         []                                   the same, when the file has all deliveries

Each delivery is a record in FOLDER/NAME.told: the interest, a digest of the row, its id and serial,
and the time of arrival.
"""

from __future__ import annotations

import asyncio
import struct
import sys
import time
import zlib
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from tidings.model import EnvironmentProblem
from tidings.network import Agent, Subscription, connect as connect_agent
from tidings.routing.clients import Delivery, Lost
from tidings.routing.protocol import Break
from tidings.studies.chain.chain_rows import Row, WrittenInterest

RECORD = struct.Struct("<IIqqq")  # interest, digest, id, serial, microseconds since 1970
PATIENCE = 120.0  # seconds to wait for a router that is starting
AGAIN = 0.1
FULL = 1 << 16  # bytes that are written together


class NewInterest(msgspec.Struct, frozen=True, array_like=True):
    """A new interest of an agent. If the agent is new, it connects to the router at `address`."""

    agent: int
    address: str
    interest: WrittenInterest


class Order(msgspec.Struct, frozen=True):
    what: str
    wishes: list[NewInterest] = []


class ListenerAnswer(msgspec.Struct, frozen=True):
    told: int  # the number of deliveries so far
    problems: list[str]  # each Lost and Break that an agent received
    in_force: list[tuple[int, int]]  # new interests, with the time from which they are in force


def digest_row(row: Row) -> int:
    """A digest of a row that does not depend on the order of its fields."""
    return zlib.crc32(msgspec.json.encode(row, order="sorted"))


class Listener:
    """The agents of this process."""

    def __init__(self, out: BinaryIO) -> None:
        self.told = 0
        self.problems: list[str] = []
        self._out, self._buffer = out, bytearray()
        self._agents: dict[int, Agent] = {}
        self._open: list[Any] = []
        self._readers: list[asyncio.Task[None]] = []

    async def subscribe(self, wishes: list[NewInterest]) -> list[tuple[int, int]]:
        """Make all subscriptions at the same time. An agent may occur only once in `wishes`."""
        return await asyncio.gather(*map(self._subscribe, wishes))

    async def _subscribe(self, wish: NewInterest) -> tuple[int, int]:
        agent = self._agents.get(wish.agent)
        if agent is None:
            agent = self._agents[wish.agent] = await self._connect(wish.address)
        told = agent.subscribe(wish.interest.text, wish.interest.dialect)
        await told.__aenter__()
        since = time.time_ns() // 1000
        self._readers.append(asyncio.create_task(self._read(wish.interest.number, told)))
        return wish.interest.number, since

    async def _connect(self, address: str) -> Agent:
        limit = time.monotonic() + PATIENCE
        while True:
            opened = connect_agent(address)
            try:
                agent = await opened.__aenter__()
            except EnvironmentProblem:  # the router is starting, or was killed
                if time.monotonic() > limit:
                    raise
                await asyncio.sleep(AGAIN)
            else:
                self._open.append(opened)
                return agent

    async def _read(self, number: int, told: Subscription) -> None:
        async for one in told:
            if isinstance(one, Lost | Break):
                self.problems.append(f"interest {number}: {one!r}")
            if not isinstance(one, Delivery):  # it is `Interrupted`, `Resumed` or a problem
                continue
            now = time.time_ns() // 1000
            row = msgspec.json.decode(one.payload)
            self._buffer += RECORD.pack(number, digest_row(row), row["id"], one.serial, now)
            self.told += 1
            if len(self._buffer) > FULL:
                self.flush()

    def flush(self) -> None:
        self._out.write(self._buffer)
        self._out.flush()
        self._buffer.clear()

    async def close(self) -> None:
        for one in self._readers:
            one.cancel()
        await asyncio.gather(*self._readers, return_exceptions=True)
        for opened in self._open:
            await opened.__aexit__(None, None, None)


COMMAND = "from tidings.studies.chain.listener import main; main()"
"""Used instead of `python -m`, which would warn that the module is already loaded."""


def main() -> None:
    asyncio.run(_serve(Path(sys.argv[1], f"{sys.argv[2]}.told")))


async def _serve(file: Path) -> None:
    loop = asyncio.get_running_loop()
    with file.open("wb") as out:
        listener = Listener(out)
        while line := await loop.run_in_executor(None, sys.stdin.buffer.readline):
            order = msgspec.json.decode(line, type=Order)
            new = await listener.subscribe(order.wishes)
            listener.flush()
            answer = ListenerAnswer(listener.told, listener.problems, new)
            sys.stdout.buffer.write(msgspec.json.encode(answer) + b"\n")
            sys.stdout.buffer.flush()
            if order.what == "end":
                break
        await listener.close()
