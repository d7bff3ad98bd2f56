"""Publishing beside a subscriber whose filters match everything, against publishing without it."""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.broker.processes import Process, tell

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
nodes, data, epoch, asked, aside = [], b"", 0, 0, 0
while len(nodes) < count:
    while asked < count and asked - len(nodes) < 500:
        link.sendall(frames.encode(m.Ask(asked, b"z%d IS NULL" % asked)))
        asked += 1
    more = link.recv(1 << 16)
    assert more, "the link was closed"
    data += more
    starts, end = frames.split(data)
    for start in starts:
        found = frames.decode(data, start)
        if isinstance(found, m.Answer):
            assert not found.refusal, found.refusal
            nodes.append(found.node)
            epoch = found.epoch
            link.sendall(frames.encode(m.Subscribe(epoch, (found.node,))))
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
        assert f"marks: {FILTERS - Limits().marks:,}" in beset.log()
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
