"""Measures what channels without traffic cost two routers in a row: memory, processor time and
bytes. Only the routers, which run as separate processes, are measured."""

from __future__ import annotations

import asyncio
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from tidings.model import EnvironmentProblem
from tidings.network import watch
from tidings.routing.protocol import Times
from tidings.studies.host.process_usage import resident_memory, running_seconds
from tidings.studies.network.channels.idle_ends import IdleRoots, IdleSubscribers
from tidings.studies.network.route_peers import end_process
from tidings.studies.network.route_tidings import start_node

CHANNELS = 10_000
RATE = 200.0  # channels that are opened per second
SETTLING = 20.0  # seconds after which all channels sleep
MEASURED = 15.0  # seconds
PATIENCE = 100.0  # seconds


class RouterCost(msgspec.Struct, frozen=True):
    """The cost of all channels at one router."""

    name: str
    bytes_each: float  # memory per channel: the memory with the channels, minus the memory without
    busy: float  # processor seconds per second
    busy_before: float  # processor seconds per second without channels
    bytes_in: float  # bytes per second, over all its links
    bytes_out: float


class IdleRun(msgspec.Struct, frozen=True):
    """The measurement."""

    channels: int
    opened: float  # channels per second, from the first to the last subscription
    seconds: float  # that were measured
    pulses: int  # pulses that reached the subscribers in that time; each pulse is for all channels
    routers: list[RouterCost]


def measure_channels(
    folder: Path, channels: int = CHANNELS, note: Callable[[str], None] = lambda _: None
) -> IdleRun:
    """Open channels with one subscription each through two routers, and measure both routers."""
    return asyncio.run(_measure(folder, channels, note))


async def _measure(folder: Path, channels: int, note: Callable[[str], None]) -> IdleRun:
    times = Times()
    roots, below = IdleRoots(times), IdleSubscribers(times, channels)
    processes: list[subprocess.Popen[bytes]] = []
    tasks: list[asyncio.Task[None]] = []
    try:
        above = await roots.start()
        names, ports = ("upper", "lower"), list[int]()
        for name in names:
            file = _write_router(folder, name, above, channels)
            above = await asyncio.to_thread(start_node, file, processes)
            ports.append(above)
        tasks = [asyncio.create_task(_repeat(roots.tick, times.beat)),
                 asyncio.create_task(_repeat(below.tick, times.resubscribe))]  # fmt: skip
        await below.connect(ports[-1])
        await asyncio.sleep(3)  # let the routers finish the work that they do only after a start
        memory = [resident_memory(one.pid)[1] for one in processes]
        first = await _watch(ports, processes, MEASURED / 3)
        note(f"channels: opening {channels:,}")
        begun = time.monotonic()
        for number in range(1, channels + 1):
            below.open(number)
            late = begun + number / RATE - time.monotonic()
            if late > 0:
                await asyncio.sleep(late)
        until = time.monotonic() + PATIENCE
        while len(below.subscribed) < channels:
            if time.monotonic() > until:
                raise EnvironmentProblem(
                    f"only {len(below.subscribed):,} of {channels:,} subscriptions are in force "
                    f"after {PATIENCE:g} seconds"
                )
            await asyncio.sleep(0.05)
        opened = channels / (time.monotonic() - begun)
        note("channels: waiting until all sleep")
        await asyncio.sleep(SETTLING)
        pulses = below.pulses
        last = await _watch(ports, processes, MEASURED)
        grown = [
            resident_memory(one.pid)[1] - size for one, size in zip(processes, memory, strict=True)
        ]
        costs = [
            RouterCost(name, grown[at] / channels, last[at][0], first[at][0], *last[at][1:])
            for at, name in enumerate(names)
        ]
        return IdleRun(channels, opened, MEASURED, below.pulses - pulses, costs)
    finally:
        for task in tasks:
            task.cancel()
        below.stop()
        roots.stop()
        for process in processes:
            end_process(process)
        await asyncio.gather(*tasks, return_exceptions=True)


def _write_router(folder: Path, name: str, above: int, channels: int) -> Path:
    path = folder / f"{name}.toml"
    path.write_text(
        f'name = "{name}"\nlisten = "127.0.0.1:0"\nupstream = "127.0.0.1:{above}"\n'
        f'[channels]\n"*" = ""\n[limits]\nchannels = {channels + 10}\n'
    )
    return path


async def _watch(
    ports: list[int], processes: list[subprocess.Popen[bytes]], seconds: float
) -> list[tuple[float, float, float]]:
    """For each router, processor seconds and bytes in and out per second."""
    before, begun = await _read(ports, processes), time.monotonic()
    await asyncio.sleep(seconds)
    after, took = await _read(ports, processes), time.monotonic() - begun
    return [
        ((b[0] - a[0]) / took, (b[1] - a[1]) / took, (b[2] - a[2]) / took)
        for a, b in zip(before, after, strict=True)
    ]


async def _read(
    ports: list[int], processes: list[subprocess.Popen[bytes]]
) -> list[tuple[float, int, int]]:
    found = []
    for port, process in zip(ports, processes, strict=True):
        spent = running_seconds(process.pid)
        async with watch(f"tidings://127.0.0.1:{port}") as reports:
            status = (await anext(reports)).nodes[0]
        links = [one for one in status.links if one.kind != "watcher"]
        found.append(
            (spent, sum(one.bytes_in for one in links), sum(one.bytes_out for one in links))
        )
    return found


async def _repeat(work: Callable[[], None], seconds: float) -> None:
    while True:
        await asyncio.sleep(seconds)
        work()
