"""Runs the pipeline of the chain: `tidings pipeline run`, and the processes that Spark starts."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path

from tidings.model import EnvironmentProblem
from tidings.spark.channel import HANDED, read_handed
from tidings.spark.outbox import Commit, Outbox
from tidings.studies.host.sessions import Session

EVERY = 0.01  # seconds between two checks of the last batch that was handed over
MOST_DEATHS = 5  # how many drivers may end without being killed
_FILE = """
name = "chain"
[source]
{source}
[subscriptions]
channel = "{address}"
[outbox]
path = "out"
[trigger]
every_seconds = 0.05
[[sinks]]
kind = "channel"
[spark]
master = "local[2,4]"
[spark.settings]
"spark.ui.enabled" = "false"
"""


class PipelineRun:
    """The pipeline, which is started again whenever it ends."""

    def __init__(self, folder: Path, address: str, source: str) -> None:
        self.folder = folder
        (folder / "pipeline.toml").write_text(_FILE.format(address=address, source=source))
        self.outbox = Outbox(folder / "out")
        self.deaths = 0  # drivers that ended without being killed
        self.handed: dict[int, int] = {}  # batch -> the time at which it was handed over
        self._lock = threading.Lock()  # the thread of the feeder calls `rows`, too
        self._read = 0  # the number of batches whose rows are counted in `_rows`
        self._rows = 0
        self._session: Session | None = None
        self._over = threading.Event()
        self._watcher = threading.Thread(target=self._watch, daemon=True)

    def start(self) -> None:
        """Start a driver. If an old driver still runs, it is not stopped."""
        command = [sys.executable, "-m", "tidings", "pipeline", "run"]
        command.append(str(self.folder / "pipeline.toml"))
        self._session = Session(command, self.folder / "pipeline.errors")
        if not self._watcher.is_alive():
            self._watcher.start()

    @property
    def session(self) -> Session:
        assert self._session is not None
        return self._session

    def check(self) -> None:
        """Start the driver again if it ended without being killed. A driver ends by itself if Spark
        gives up after a worker was killed, or if the rendezvous point is gone for too long."""
        if self.session.alive():
            return
        self.deaths += 1
        if self.deaths > MOST_DEATHS:
            raise EnvironmentProblem(f"the pipeline ended {self.deaths} times: {self.errors()}")
        self.session.end()
        self.start()

    def errors(self) -> str:
        file = self.folder / "pipeline.errors"
        return file.read_text(errors="replace").strip()[-2000:]

    def end(self) -> None:
        self._over.set()
        if self._session is not None:
            self._watcher.join()
            self._session.end()

    # -- progress ------------------------------------------------------------------------------

    def last(self) -> int:
        """The last batch that was handed over; -1 if there is none."""
        found = read_handed(self.outbox.channel_folder)
        return -1 if found is None else found.batch

    def rows(self) -> int:
        """The number of rows in the batches that were handed over to the rendezvous point."""
        last = self.last()
        with self._lock:
            while self._read <= last:
                commit = self.outbox.read_commit(self._read)
                self._rows += commit.rows if commit is not None else 0
                self._read += 1
            return self._rows

    def commits(self) -> list[Commit]:
        return [*self.outbox.log.each()]

    def _watch(self) -> None:
        """Record when batches were handed over. The time is the modification time of the file that
        names the last batch. A batch that was followed by another batch within EVERY seconds is
        left out."""
        path = self.outbox.channel_folder / HANDED
        while not self._over.is_set():
            before = self.last()
            if before >= 0 and before not in self.handed:
                at = path.stat().st_mtime_ns // 1000
                if self.last() == before:
                    self.handed[before] = at
            time.sleep(EVERY)
