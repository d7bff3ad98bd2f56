"""Programs that a measurement kills and starts again, each in its own session.

Everything that a program starts stays in its session, even Spark's Python daemon, which has its own
process group. Only processes of sessions that were started here are ever killed (Linux: /proc).
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

SOURCE = Path(__file__).parents[3]
"""The folder of the package, for programs that run in another folder."""


class Process(msgspec.Struct, frozen=True):
    pid: int
    parent: int
    command: str


def in_session(session: int) -> list[Process]:
    """The living processes of a session."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # the process has ended
            state, parent, _, its = (folder / "stat").read_text().rpartition(") ")[2].split()[:4]
            if int(its) == session and state not in "ZX":
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                found.append(Process(int(folder.name), int(parent), command))
    return found


def send(pid: int, what: signal.Signals = signal.SIGKILL) -> bool:
    """Send a signal; return False if the process no longer exists."""
    try:
        os.kill(pid, what)
    except ProcessLookupError:
        return False
    return True


class Session:
    """A process in its own session, with all processes that it starts."""

    def __init__(
        self,
        command: Sequence[str],
        errors: Path,
        env: Mapping[str, str] | None = None,
        *,
        has_stdin: bool = False,
    ) -> None:
        """The output of the process is appended to the file `errors`. If `has_stdin` is set, the
        stdin of the process is a pipe that ends when this process ends."""
        path = os.pathsep.join([str(SOURCE), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
        with errors.open("ab") as out:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE if has_stdin else subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
                env={**os.environ, "PYTHONPATH": path, **(env or {})},
            )

    @property
    def pid(self) -> int:
        return self.process.pid

    def alive(self) -> bool:
        return self.process.poll() is None

    def members(self) -> list[Process]:
        return in_session(self.pid)

    def part(self, role: str) -> list[int]:
        """The members that have a role in Spark, by their pids: jvm, daemon, worker or
        executor."""
        members = self.members()
        if role in ("worker", "daemon"):
            # Java starts the daemon, which forks workers; a worker may outlive the daemon
            java = {one.pid for one in members if "org.apache.spark" in one.command}
            forked = [one for one in members if "pyspark.daemon" in one.command]
            return [one.pid for one in forked if (one.parent in java) == (role == "daemon")]
        word = {"jvm": "deploy.SparkSubmit", "executor": "CoarseGrainedExecutorBackend"}[role]
        return [one.pid for one in members if word in one.command]

    def end(self) -> None:
        """Kill all processes of the session; without /proc, kill only the program itself."""
        if self.alive():
            self.process.kill()
        while members := self.members():
            for one in members:
                send(one.pid)
            self.process.poll()
            time.sleep(0.01)
        self.process.wait()
        if self.process.stdin is not None:
            self.process.stdin.close()
