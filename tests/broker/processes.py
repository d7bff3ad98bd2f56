"""Routers as separate processes, their use of resources, and an honest publisher and subscriber."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.forking import Forked

from tidings.network.agent import connect
from tidings.routing.clients import Interrupted, Resumed
from tidings.routing.clients.subscriber import Delivery

ROOT = """
name = "root"
listen = "127.0.0.1:0"
journal = "journal.db"
[tokens]
hostile = "*"
ours = {name = "edge", may = ["route"]}
reads = "reader"
writes = "writer"
"""
EDGE = """
name = "edge"
listen = "127.0.0.1:0"
upstream = "127.0.0.1:{port}"
token = "ours"
[tokens]
hostile = "*"
reads = "reader"
writes = "writer"
"""


def write_secret(path: Path, text: str) -> Path:
    """Write a file that has tokens in it."""
    path.touch(0o600)
    path.chmod(0o600)
    path.write_text(text)
    return path


def tell(*what: object) -> None:
    """Say what was measured: `pytest -s` shows it."""
    sys.stderr.write(" ".join(map(str, what)) + "\n")


class Process:
    """`tidings router` with a file."""

    def __init__(self, folder: Path, name: str, text: str) -> None:
        path = folder / f"{name}.toml"
        write_secret(path, text)
        self._errors = (folder / f"{name}.log").open("w+")
        self._process = Forked(
            [sys.executable, "-m", "tidings", "router", "--config", str(path)],
            stdout=subprocess.PIPE, stderr=self._errors, text=True,
        )  # fmt: skip
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline().rsplit(":", 1)[1])

    @property
    def resident(self) -> float:
        """Megabytes."""
        text = Path(f"/proc/{self._process.pid}/status").read_text()
        return int(text.split("VmRSS:")[1].split()[0]) / 1024

    @property
    def open_files(self) -> int:
        return len(os.listdir(f"/proc/{self._process.pid}/fd"))  # noqa: PTH208

    def signal(self, number: int) -> None:
        self._process.send_signal(number)

    def wait(self, seconds: float) -> None:
        """Wait, for so long at most, until it has ended."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)

    def is_up(self) -> bool:
        return self._process.poll() is None

    def log(self) -> str:
        self._errors.seek(0)
        return self._errors.read()

    def stop(self) -> int:
        """End it; what it gives back."""
        self._process.send_signal(signal.SIGTERM)
        try:
            code = self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        self._process.communicate()
        self._errors.close()
        return code


class Pair:
    """A publisher and a subscriber that go on all the time."""

    def __init__(self) -> None:
        self.published: list[int] = []
        self.told: list[int] = []
        self.other: list[object] = []
        self.seconds: list[float] = []

    def percentile(self, part: float) -> float:
        return sorted(self.seconds)[int(part * (len(self.seconds) - 1))]


@asynccontextmanager
async def a_pair(read_at: int, write_at: int, pause: float = 0.02) -> AsyncIterator[Pair]:
    """The pair at the ports of two routers; at the end, everything that was published has come."""
    pair = Pair()
    begun: dict[int, float] = {}
    there = "tidings://127.0.0.1:"
    async with (
        connect(f"{there}{read_at}", name="reader", token="reads") as reader,
        connect(f"{there}{write_at}", name="writer", token="writes") as writer,
        reader.subscribe("pair = 'ours'") as told,
    ):

        async def read() -> None:
            async for one in told:
                if isinstance(one, Delivery):
                    number = int(one.payload)
                    pair.told.append(number)
                    pair.seconds.append(time.monotonic() - begun[number])
                elif not isinstance(one, Interrupted | Resumed):
                    pair.other.append(one)

        async def write() -> None:
            while True:
                number = len(begun)
                begun[number] = time.monotonic()
                await writer.publish({"pair": "ours"}, b"%d" % number)
                pair.published.append(number)
                await asyncio.sleep(pause)

        tasks = [asyncio.create_task(read()), asyncio.create_task(write())]
        try:
            yield pair
            tasks[1].cancel()
            for _ in range(300):
                if set(pair.published) <= set(pair.told):
                    break
                await asyncio.sleep(0.1)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
