"""Measures how much work preprocessors save a rendezvous point, and how fast they are.

    attributes ──> 1 or 2 preprocessors ──> tags
    raw socket ──Publish, with and without tags──> [rendezvous point, journal] ──> a receiver

Filters, attributes and the method of publishing are those of route_mixed.py. Rounds with and
without tags alternate; the receiver must get the same notifications in both.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from tidings.model import EnvironmentProblem
from tidings.network import connect
from tidings.routing.protocol import unpack_tag
from tidings.studies.host.process_usage import running_seconds
from tidings.studies.network.route_flow import Missing
from tidings.studies.network.route_mixed import encode_bursts, publish_raw
from tidings.studies.network.route_parts import CountingReceiver, distinct_filters, start_root
from tidings.studies.network.route_peers import end_process
from tidings.studies.workloads.workloads import make_workload

FILTERS = 10_000
EVENTS = 16_384  # distinct events; the notifications cycle through their attributes
ASKED = 1_000  # notifications in one question to a preprocessor
ENOUGH = 4  # two preprocessors are measured only on at least this many cores


class Tagged(msgspec.Struct, frozen=True):
    """The measurements."""

    filters: int
    alone: float  # microseconds of the rendezvous point's processor time per notification
    helped: float  # the same time, if the notifications are already tagged
    ratio: float  # `helped` divided by `alone`; the median over the rounds
    rates: list[float]  # notifications per second tagged by one preprocessor, and by two
    published: int


def measure_preprocessors(
    folder: Path,
    seconds: float,
    rounds: int,
    window: int,
    payload: bytes,
    *,
    seed: int = 1,
    note: Callable[[str], None] = lambda _: None,
) -> Tagged:
    """Run a rendezvous point whose journal is in a folder, and preprocessors of its channel."""
    note(f"preprocessors: placing {FILTERS:,} filters")
    workload = make_workload("mixed", FILTERS, EVENTS, seed)
    stored, lines = distinct_filters(workload), [*workload.event_lines()]
    processes: list[subprocess.Popen[bytes]] = []
    alone, helped, rates, count = list[float](), list[float](), list[float](), 0
    try:
        port = start_root(folder, stored, processes)
        many = 2 if (os.cpu_count() or 1) >= ENOUGH else 1
        tags: list[bytes] = []
        for number in range(many):
            note(f"preprocessors: {number + 1} of {many}")
            _start_preprocessor(port, processes)
            tags, rate = asyncio.run(_tag_all(port, lines, seconds, number + 1))
            rates.append(rate)
        receiver = CountingReceiver(port, [node for node, _ in stored])
        matched = [bool(found.nodes) for found in map(unpack_tag, tags) if found is not None]
        told = 0

        def publish(name: str, given: Sequence[bytes], seconds: float) -> float:
            """Microseconds of processor time per notification."""
            nonlocal told, count
            most = int(150_000 * seconds)
            bursts = [*encode_bursts(name, lines, payload, window, most, given)]
            before = running_seconds(processes[0].pid)
            sent, _ = publish_raw(port, name, bursts, window, seconds)
            count += sent
            told += sum(matched[at % len(lines)] for at in range(1, sent + 1))
            receiver.wait_for(told)
            return 1e6 * (running_seconds(processes[0].pid) - before) / max(sent, 1)

        for name, given in (("warm", ()), ("warmer", tags)):
            publish(name, given, seconds)
        for number in range(rounds):
            note(f"preprocessors: round {number + 1} of {rounds}")
            alone.append(publish(f"alone{number}", (), seconds))
            helped.append(publish(f"helped{number}", tags, seconds))
        receiver.end()
    finally:
        for process in processes:
            end_process(process)
    ratio = statistics.median(two / one for one, two in zip(alone, helped, strict=True))
    return Tagged(
        len(stored), statistics.median(alone), statistics.median(helped), ratio, rates, count
    )


def _start_preprocessor(port: int, processes: list[subprocess.Popen[bytes]]) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "tidings", "preprocessor", f"tidings://127.0.0.1:{port}"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    processes.append(process)
    assert process.stdout is not None
    if not process.stdout.readline():
        raise EnvironmentProblem("the preprocessor did not start")


async def _tag_all(
    port: int, lines: Sequence[bytes], seconds: float, many: int
) -> tuple[list[bytes], float]:
    """The tags of notifications, and how many notifications the preprocessors tagged per second."""
    async with connect(f"tidings://127.0.0.1:{port}", tag="preprocessor") as agent:
        ask = agent.preprocessors
        for _ in range(200):
            if len(ask) >= many:
                break
            await asyncio.sleep(0.1)
        else:
            raise EnvironmentProblem(f"found {len(ask)} preprocessors, expected {many}")
        pieces = [lines[at : at + ASKED] for at in range(0, len(lines), ASKED)]
        tags = [tag for piece in pieces for tag in await ask.tag(piece)]
        if not all(tags):
            raise Missing("some notifications were not tagged")
        done, start = 0, time.perf_counter()
        while time.perf_counter() - start < seconds:
            found = await asyncio.gather(*(ask.tag(piece) for piece in pieces))
            done += sum(map(len, found))
        return tags, done / (time.perf_counter() - start)
