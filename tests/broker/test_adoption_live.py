"""A rendezvous point that runs as a process adopts snapshots, and is killed meanwhile."""

from __future__ import annotations

import asyncio
import random
import signal
import subprocess
import sys
from pathlib import Path

from tests.broker.processes import Process
from tests.broker.test_channels_live import payloads

from tidings.network import connect
from tidings.snapshots import Snapshot
from tidings.store import ChangeLog

ROOT = """
name = "root"
listen = "127.0.0.1:{port}"
journal = "journal.db"
[columns]
n = "bigint"
"""
MANY = 300


def adopt(folder: Path, prefix: str) -> subprocess.Popen[str]:
    """`tidings channel adopt`, with subscriptions whose ids begin with a prefix."""
    place = folder / f"{prefix}.snapshot"
    Snapshot.build({f"{prefix}{n}": f"n > {n}" for n in range(MANY)}).save(place)
    words = ["channel", "adopt", str(folder / "journal.db"), str(place), "--owner", prefix]
    return subprocess.Popen(
        [sys.executable, "-m", "tidings", *words],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_adoptions_and_kills(tmp_path: Path, seed: int) -> None:
    """Each snapshot is adopted once, whenever the rendezvous point dies: by it, by its successor,
    or by the command itself. A subscriber gets everything that was published."""
    chance = random.Random(seed)
    root = Process(tmp_path, "root", ROOT.format(port=0))
    port = root.port
    log = ChangeLog(tmp_path / "journal.db")

    async def work() -> None:
        nonlocal root
        async with (
            connect(f"tidings://127.0.0.1:{port}", timeout=60) as agent,
            agent.subscribe(f"n > {MANY}") as told,
        ):
            first = adopt(tmp_path, "a")
            out, err = await asyncio.to_thread(first.communicate)
            assert (first.returncode, err) == (0, ""), err
            assert out.startswith(f"{MANY} subscriptions adopted as version ")
            await agent.publish({"n": MANY + 1}, b"a", timeout=60)
            for prefix in "bcd":
                command = adopt(tmp_path, prefix)
                await asyncio.sleep(chance.uniform(0.3, 2.5))
                root.signal(signal.SIGKILL)
                await asyncio.to_thread(root.stop)
                await asyncio.sleep(chance.choice((0, 0.5)))
                root = await asyncio.to_thread(Process, tmp_path, "root", ROOT.format(port=port))
                out, err = await asyncio.to_thread(command.communicate)
                assert command.returncode == 0, err
                assert "subscriptions adopted as version" in out
                await agent.publish({"n": MANY + 1}, prefix.encode(), timeout=60)
            assert await payloads(told, 4) == [b"a", b"b", b"c", b"d"]

    try:
        asyncio.run(work())
        found = log.subscriptions()
        nodes = {prefix: [found[f"{prefix}{n}"][1] for n in range(MANY)] for prefix in "abcd"}
        assert nodes["a"] == nodes["b"] == nodes["c"] == nodes["d"]  # equal filters, equal nodes
        named = [id_ for id_ in found if not str(id_).startswith("node ")]
        assert len(named) == 4 * MANY
        owners = log.state().owners
        assert all(owners[id_] == str(id_)[0] for id_ in named)
        assert not [*(tmp_path / "journal.db" / "bulks").glob("incoming-*")]
        second = adopt(tmp_path, "a")
        err = second.communicate()[1]
        assert second.returncode == 2
        assert "has a subscription in" in err
        assert "Traceback" not in err
    finally:
        root.stop()
