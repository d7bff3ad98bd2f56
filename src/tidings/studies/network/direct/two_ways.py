"""Measures the same notifications on two paths: through three routers, and over a second link to
the rendezvous point.

    publisher ──> [rendezvous point] ──> [router] ──> [router] ──> [router] ──> one subscriber
                          └────────────────── second link ──────────────────────────┘

At the last router, ten agents have 999 other subscriptions, none of which matches. Rounds over the
two paths alternate. A single process plays the publisher and all agents: it publishes at a fixed
rate, and notes for each notification the time from its publication to its arrival, including the
write to the disk.
"""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import msgspec

from tidings.model import EnvironmentProblem
from tidings.network import Agent, connect
from tidings.routing.clients import Delivery
from tidings.studies.host.process_usage import running_seconds
from tidings.studies.network.route_durable import percentiles
from tidings.studies.network.route_flow import Missing
from tidings.studies.network.route_peers import end_process
from tidings.studies.network.route_tidings import start_node

ROUTERS = 3
AGENTS = 10  # agents that have the other subscriptions
OTHERS = 999  # subscriptions that never match
RATE = 500.0  # publications per second
WARM = 100  # warm-up publications before each round
PATIENCE = 30.0  # seconds within which a subscription must use the right path


class DirectWay(msgspec.Struct, frozen=True):
    """The measurements of one path: medians over the rounds."""

    name: str
    p50: float  # milliseconds from publication to arrival
    p99: float
    routers: float  # microseconds of all routers' processor time per notification
    root: float  # microseconds of the rendezvous point's processor time per notification
    notifications: int


class TwoWays(msgspec.Struct, frozen=True):
    """The measurements."""

    routers: int
    others: int
    rate: float
    ways: list[DirectWay]


class _Round(msgspec.Struct, frozen=True):
    p50: float
    p99: float
    routers: float
    root: float
    notifications: int


def measure_direct(
    folder: Path, seconds: float, rounds: int, note: Callable[[str], None] = lambda _: None
) -> TwoWays:
    """Run a rendezvous point and a chain of routers, with their files in a folder."""
    processes: list[subprocess.Popen[bytes]] = []
    try:
        file = folder / "root.toml"
        file.write_text(
            'name = "root"\nlisten = "127.0.0.1:0"\njournal = "journal.db"\n[direct]\nmost = 4\n'
        )
        root = port = start_node(file, processes)
        for number in range(ROUTERS):
            file = folder / f"router{number}.toml"
            file.write_text(
                f'name = "router{number}"\nlisten = "127.0.0.1:0"\nupstream = "127.0.0.1:{port}"\n'
            )
            port = start_node(file, processes)
        return asyncio.run(_measure(root, port, processes, seconds, rounds, note))
    finally:
        for process in reversed(processes):
            end_process(process)


async def _measure(
    root: int,
    last: int,
    processes: Sequence[subprocess.Popen[bytes]],
    seconds: float,
    rounds: int,
    note: Callable[[str], None],
) -> TwoWays:
    found: dict[str, list[_Round]] = {"tree": [], "direct": []}
    async with AsyncExitStack() as stack:
        note(f"direct: {OTHERS:,} other subscriptions")
        for number in range(AGENTS):
            agent = await stack.enter_async_context(
                connect(f"tidings://127.0.0.1:{last}", direct=False)
            )
            for at in range(number, OTHERS, AGENTS):
                await stack.enter_async_context(agent.subscribe(f"n = {at + 1}"))
        writer = await stack.enter_async_context(connect(f"tidings://127.0.0.1:{root}"))
        for number in range(rounds):
            for name, rows in found.items():
                note(f"direct: {name}, round {number + 1} of {rounds}")
                rows.append(await _one_round(name, writer, last, processes, seconds))
    ways = [
        DirectWay(
            name,
            statistics.median(one.p50 for one in rows),
            statistics.median(one.p99 for one in rows),
            statistics.median(one.routers for one in rows),
            statistics.median(one.root for one in rows),
            sum(one.notifications for one in rows),
        )
        for name, rows in found.items()
    ]
    return TwoWays(ROUTERS, OTHERS, RATE, ways)


async def _one_round(
    name: str,
    writer: Agent,
    last: int,
    processes: Sequence[subprocess.Popen[bytes]],
    seconds: float,
) -> _Round:
    is_direct = name == "direct"
    async with (
        connect(f"tidings://127.0.0.1:{last}", direct=is_direct) as reader,
        reader.subscribe("n = 0") as told,
    ):
        limit = time.monotonic() + PATIENCE
        while bool(reader.state.direct) is not is_direct:
            if time.monotonic() > limit:
                raise EnvironmentProblem(f"there is no second link after {PATIENCE:.0f} s")
            await asyncio.sleep(0.05)
        sent: dict[bytes, float] = {}
        times: list[float] = []

        async def publish(many: int) -> None:
            begun, first = time.perf_counter(), len(sent)
            for number in range(first, first + many):
                due = begun + (number - first) / RATE
                await asyncio.sleep(max(0.0, due - time.perf_counter()))
                payload = b"%d" % number
                sent[payload] = time.perf_counter()
                await writer.publish({"n": 0}, payload)

        async def receive(many: int) -> None:
            while len(times) < many:
                one = await told.next(PATIENCE)
                if not isinstance(one, Delivery):
                    raise Missing(f"found {one} instead of a notification")
                times.append(1000 * (time.perf_counter() - sent[one.payload]))

        await asyncio.gather(publish(WARM), receive(WARM))
        times.clear()
        many = max(10, int(RATE * seconds))
        before = [running_seconds(process.pid) for process in processes]
        await asyncio.gather(publish(many), receive(many))
        spent = [running_seconds(p.pid) - b for p, b in zip(processes, before, strict=True)]
        half, tail = percentiles(times)
        micros = 1e6 / many
        return _Round(half, tail, micros * sum(spent[1:]), micros * spent[0], many)
