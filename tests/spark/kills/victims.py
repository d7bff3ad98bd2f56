"""Processes to kill: the driver, what it started, and a cluster of its own."""

from __future__ import annotations

import shutil
import sys
from contextlib import suppress
from pathlib import Path

from tidings.studies.host.ports import free_ports
from tidings.studies.host.sessions import SOURCE, Session, send

__all__ = ["SOURCE", "Cluster", "Driver", "Session", "clean_up_after", "send"]
DRIVER = Path(__file__).with_name("driver.py")


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
