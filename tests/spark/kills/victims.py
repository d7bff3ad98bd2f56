"""Processes to kill: the driver, what it started, and a cluster of its own.

Everything that a driver starts stays in its session, also Spark's Python daemon, which makes itself
a process group of its own. Only processes of sessions that were begun here are ever killed.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import msgspec
from tests.ports import free_ports

DRIVER = Path(__file__).with_name("driver.py")
SOURCE = Path(__file__).parents[3] / "src"


class Process(msgspec.Struct, frozen=True):
    pid: int
    parent: int
    command: str


def in_session(session: int) -> list[Process]:
    """The living processes of a session."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it is gone
            state, parent, _, its = (folder / "stat").read_text().rpartition(") ")[2].split()[:4]
            if int(its) == session and state not in "ZX":
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                found.append(Process(int(folder.name), int(parent), command))
    return found


def send(pid: int, what: signal.Signals = signal.SIGKILL) -> bool:
    try:
        os.kill(pid, what)
    except ProcessLookupError:
        return False
    return True


class Session:
    """A process in a session of its own, with all that it starts."""

    def __init__(self, command: list[str], errors: Path, env: dict[str, str] | None = None) -> None:
        path = os.pathsep.join([str(SOURCE), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
        with errors.open("ab") as out:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
                env=os.environ | {"PYTHONPATH": path} | (env or {}),
            )

    @property
    def pid(self) -> int:
        return self.process.pid

    def alive(self) -> bool:
        return self.process.poll() is None

    def members(self) -> list[Process]:
        return in_session(self.pid)

    def part(self, role: str) -> list[int]:
        """The processes of a role."""
        members = self.members()
        if role in ("worker", "daemon"):
            # Java starts the daemon, which forks workers; they live on when it is killed
            java = {one.pid for one in members if "org.apache.spark" in one.command}
            forked = [one for one in members if "pyspark.daemon" in one.command]
            return [one.pid for one in forked if (one.parent in java) == (role == "daemon")]
        word = {"jvm": "deploy.SparkSubmit", "executor": "CoarseGrainedExecutorBackend"}[role]
        return [one.pid for one in members if word in one.command]

    def end(self) -> None:
        """Kill everything in the session, until nothing is left."""
        while members := self.members():
            for one in members:
                send(one.pid)
            self.process.poll()
            time.sleep(0.01)
        self.process.wait()


class Driver(Session):
    """A driver and its parts."""

    def __init__(self, folder: Path) -> None:
        command = [sys.executable, str(DRIVER), str(folder / "pipeline.toml")]
        super().__init__(command, folder / "errors")


class Cluster:
    """A standalone cluster of Spark: a master and workers, each in a session of its own."""

    def __init__(self, folder: Path, workers: int = 2) -> None:
        self.folder = folder
        (port,) = free_ports(1)
        self.url = f"spark://127.0.0.1:{port}"
        self._master = self._started(
            "master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"
        )
        self.workers = [self.new_worker() for _ in range(workers)]

    def new_worker(self) -> Session:
        return self._started(
            "worker.Worker", "--host", "127.0.0.1", "-c", "1", "-m", "2048m", "--webui-port", "0",
            "--work-dir", str(self.folder / "work"), self.url,
        )  # fmt: skip

    def _started(self, kind: str, *arguments: str) -> Session:
        import pyspark

        from tidings.spark.session.java import java_home

        home = Path(pyspark.__file__).parent
        command = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind}", *arguments]
        env = {
            "JAVA_HOME": str(java_home()),
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "512m",
        }
        return Session(command, self.folder / "cluster-errors", env)

    def end(self) -> None:
        for one in (*self.workers, self._master):
            one.end()


def clean_up_after(folder: Path) -> None:
    """`local-cluster` keeps the folders of its executors where PySpark is installed."""
    import pyspark

    work = Path(pyspark.__file__).parent / "work"
    noted = folder / "applications"
    for application in noted.read_text().split() if noted.exists() else ():
        if application.startswith("app-"):
            shutil.rmtree(work / application, ignore_errors=True)
    with suppress(OSError):  # others may have theirs there
        work.rmdir()
