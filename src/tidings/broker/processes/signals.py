"""Sends signals to processes that asyncio started.

`Process.kill` and `Process.send_signal` first ask the operating system whether the process has
ended, and that collects the exit status. If the process had just ended, asyncio then finds no
status, logs a warning, and reports 255.
"""

from __future__ import annotations

import contextlib
import os
from asyncio.subprocess import Process


def send_signal(process: Process, number: int) -> None:
    """Send a signal, unless the process is known to have ended. Leave the exit status for asyncio
    to collect."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, number)
