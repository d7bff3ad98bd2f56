"""Compiles snapshots in a separate process, while batches continue."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

LEFT_OVER = 3600.0  # seconds after which an unfinished snapshot counts as abandoned
WAIT = 30.0  # seconds for a compilation to finish when its pipeline stops


class Background:
    """Runs at most one compilation at a time."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self, module: str, *arguments: str) -> None:
        """Run the `main` of a module, unless a compilation is already running."""
        if self.is_running:
            return
        command = [sys.executable, "-m", module, *arguments]
        # the process has its own session, so that Ctrl-C at the terminal reaches only the pipeline
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)

    def close(self) -> None:
        """Wait up to WAIT seconds for a running compilation, and then kill it."""
        if self._process is not None:
            try:
                self._process.wait(WAIT)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()


def remove_left_overs(home: Path) -> None:
    """Remove abandoned snapshots from a folder."""
    for hidden in home.glob(".*"):
        with suppress(FileNotFoundError):
            if hidden.stat().st_mtime < time.time() - LEFT_OVER:
                shutil.rmtree(hidden, ignore_errors=True)
