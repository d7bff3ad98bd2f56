"""A progress bar of the Spark jobs that a command is waiting for."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tidings.cli.common.screen import tasks_of_jobs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PATIENCE = 2.0  # seconds that jobs run before a bar is drawn
LOOK = 0.2  # seconds between two polls of Spark


@contextmanager
def show_jobs(spark: SparkSession, label: str, patience: float = PATIENCE) -> Iterator[None]:
    """Draw a progress bar if the jobs in the block take longer than `patience` and stderr is a
    terminal. When the block ends, the bar is erased."""
    if not sys.stderr.isatty():
        yield
        return
    done = threading.Event()
    watcher = threading.Thread(target=_watch, args=(spark, label, patience, done), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


def _watch(spark: Any, label: str, patience: float, done: threading.Event) -> None:
    tracker = spark.sparkContext.statusTracker()
    began = time.monotonic()
    while not done.wait(LOOK):
        if time.monotonic() - began >= patience and tracker.getActiveStageIds():
            break
    if done.is_set():
        return
    with tasks_of_jobs(label) as update:
        while not done.wait(LOOK):
            stages = [tracker.getStageInfo(one) for one in tracker.getActiveStageIds()]
            known = [one for one in stages if one is not None]
            if known:
                update(sum(one.numCompletedTasks for one in known),
                       sum(one.numTasks for one in known))  # fmt: skip
