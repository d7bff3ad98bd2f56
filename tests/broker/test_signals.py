"""Signals to processes that have ended, which asyncio does not know yet."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Iterator

import pytest

from tidings.broker.processes import send_signal

pytestmark = pytest.mark.skipif(
    not hasattr(os, "pidfd_open"), reason="elsewhere, a thread takes the status at once"
)


@pytest.fixture(autouse=True)
def watched_by_the_loop() -> Iterator[None]:
    """Let the event loop take the status of processes, as it does in later releases of Python.
    Then nobody takes it while the loop does not run."""
    if sys.version_info >= (3, 12):
        yield
        return
    policy = asyncio.get_event_loop_policy()
    before = policy.get_child_watcher()
    policy.set_child_watcher(asyncio.PidfdChildWatcher())
    yield
    policy.set_child_watcher(before)


def wait_for_the_end(process: asyncio.subprocess.Process) -> None:
    """Wait, and leave the status to be taken. The event loop does not run meanwhile."""
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)


async def start(program: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(sys.executable, "-c", program)


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM, signal.SIGKILL])
def test_a_process_that_has_ended_keeps_its_status(number: int) -> None:
    async def work() -> int:
        process = await start("raise SystemExit(7)")
        wait_for_the_end(process)
        send_signal(process, number)
        return await process.wait()

    assert asyncio.run(work()) == 7


def test_a_process_that_runs_gets_the_signal() -> None:
    async def work() -> int:
        process = await start("import time; time.sleep(600)")
        send_signal(process, signal.SIGKILL)
        status = await process.wait()
        send_signal(process, signal.SIGKILL)  # nothing: its number may be that of another process
        return status

    assert asyncio.run(work()) == -signal.SIGKILL
