"""A stand-in for a rendezvous point in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).parents[2]


class StandInProcess:
    """A stand-in in a process of its own, that can be killed and started again."""

    def __init__(self, folder: Path, port: int = 0) -> None:
        command = [sys.executable, "-m", "tests.spark.standin", str(folder), str(port)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=TOP)
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line.startswith("listening on port ")
        self.port = int(line.split()[-1])

    def kill(self) -> None:
        if self._process.returncode is None:
            self._process.kill()
            self._process.communicate()
