"""The speed of publishing with a subscriber whose filters match everything, against that without
it."""

from __future__ import annotations

import asyncio
import os
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.broker.processes import Process, tell
from tests.waiting import wait_for

from tidings.network.agent import Agent, connect
from tidings.routing.protocol import Limits

OPEN = """
name = "{name}"
listen = "127.0.0.1:0"
journal = "{name}.db"
[times]
expire = 600
silent = 300
"""
FILTERS = int(os.environ.get("TIDINGS_FILTERS", "1500"))
WITHIN = 2.0  # times, of publishing one by one
MARK = 8.0  # microseconds; these bounds are generous, as machines that run tests are busy
HOSTILE = """
import socket, sys, time
from tidings.routing.protocol import frames, messages as m
port, count = int(sys.argv[1]), int(sys.argv[2])
link = socket.create_connection(("127.0.0.1", port))
link.sendall(frames.encode(m.Hello("hostile")))
link.settimeout(60)
nodes, data, waiting, asked = set(), b"", {}, 0  # waiting: when each request was last sent
while len(nodes) < count:
    # a root ignores requests beyond the share of work, so they are sent again, as agents do
    again = [one for one, sent in waiting.items() if time.monotonic() - sent > 1]
    fresh = range(asked, min(count, asked + 500 - len(waiting)))
    asked = max(asked, fresh.stop)
    for one in [*again, *fresh]:
        link.sendall(frames.encode(m.Ask(one, b"z%d IS NULL" % one)))
        waiting[one] = time.monotonic()
    more = link.recv(1 << 16)
    assert more, "the link was closed"
    data += more
    starts, end = frames.split(data)
    for start in starts:
        found = frames.decode(data, start)
        if isinstance(found, m.Answer):
            assert not found.refusal, found.refusal
            waiting.pop(found.request, None)
            if found.node not in nodes:
                nodes.add(found.node)
                link.sendall(frames.encode(m.Subscribe(found.epoch, (found.node,))))
    data = data[end:]
print("ready", flush=True)
link.settimeout(1)
while True:
    try:
        if not link.recv(1 << 20):
            break
    except TimeoutError:
        pass
"""


async def one_by_one(agent: Agent, count: int) -> float:
    begun = time.perf_counter()
    for number in range(count):
        await agent.publish({"n": number}, b"x" * 100)
    return (time.perf_counter() - begun) / count


async def with_a_window(agent: Agent, count: int) -> float:
    begun = time.perf_counter()
    await asyncio.gather(*(agent.publish_soon({"n": n}, b"x" * 100) for n in range(count)))
    return (time.perf_counter() - begun) / count


def set_aside(log: str) -> int:
    """How many filters the root has set aside by its log, with those that were asked for again."""
    return max(
        (int(one.replace(",", "")) for one in re.findall(r"marks: ([\d,]+)", log)), default=0
    )


@pytest.mark.bench
def test_filters_that_match_everything_do_not_stop_others(tmp_path: Path) -> None:
    """Alternately at a root with nobody else and at one with such a subscriber, all of them
    processes: the median of the ratios one by one, and of what a mark costs where many share a
    sync."""
    calm = Process(tmp_path, "calm", OPEN.format(name="calm"))
    beset = Process(tmp_path, "beset", OPEN.format(name="beset"))
    command = [sys.executable, "-c", HOSTILE, str(beset.port), str(FILTERS)]
    hostile = subprocess.Popen(command, stdout=subprocess.PIPE)

    async def work() -> tuple[list[float], list[float]]:
        singles: list[float] = []
        marks: list[float] = []
        async with (
            connect(f"tidings://127.0.0.1:{calm.port}", name="a") as quiet,
            connect(f"tidings://127.0.0.1:{beset.port}", name="b") as busy,
        ):
            for agent in (quiet, busy):  # what is set aside goes, the rest is sealed
                await one_by_one(agent, 200)
            await asyncio.sleep(1.5)
            await one_by_one(busy, 400)
            for _ in range(9):
                ratio = await one_by_one(busy, 50) / await one_by_one(quiet, 50)
                singles.append(ratio)
                more = await with_a_window(busy, 300) - await with_a_window(quiet, 300)
                marks.append(more / Limits().marks * 1e6)
        return singles, marks

    try:
        assert hostile.stdout is not None
        assert hostile.stdout.readline() == b"ready\n", beset.log()
        singles, marks = asyncio.run(asyncio.wait_for(work(), 280))
        # logged every ten seconds
        assert wait_for(lambda: set_aside(beset.log()) >= FILTERS - Limits().marks), beset.log()
    finally:
        hostile.kill()
        hostile.communicate()
        calm.stop(), beset.stop()
    single, mark = statistics.median(singles), statistics.median(marks)
    said = f"one by one {single:.2f} times as long, with a window {mark:.2f} us more for a mark"
    tell(said)
    assert single < 2 * WITHIN, said
    assert mark < MARK, said


@pytest.mark.slow
def test_ten_thousand_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "FILTERS", 10_000)
    test_filters_that_match_everything_do_not_stop_others(tmp_path)
