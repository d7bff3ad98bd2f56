"""A pipeline that can be ended between two batches, and that says why it failed.

To stop a query in the middle of a batch does no harm: the batch is done again. But it throws away
work, so the running batch is let through, if it does not take too long, and the next one is
refused before anything of it is written. Spark has its rows in the checkpoint by then, and gives
them again.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from tidings.model import TidingsError
from tidings.spark.pipeline.pipeline import BatchListener, Pipeline
from tidings.spark.pipeline.settings import Settings
from tidings.spark.session.failures import sentence_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

PAUSE = 0.05  # seconds between two looks
NOTING = 5.0  # seconds that Spark is given, when no batch is at work, to note what it did


class Ending(Exception):
    """A batch that was not begun, because the pipeline is about to end."""


class StoppablePipeline(Pipeline):
    """A pipeline for `tidings pipeline run`."""

    def __init__(
        self, settings: Settings, spark: SparkSession, on_batch: BatchListener = lambda _a, _b: None
    ) -> None:
        super().__init__(settings, spark, on_batch)
        self.ending = threading.Event()
        """When it is set, no further batch begins."""
        self.batch: int | None = None
        """The batch that is worked on."""
        self.failure: Exception | None = None
        self._cut_off = False  # in the middle of a batch

    def run_batch(self, df: DataFrame, batch: int) -> None:
        if self.ending.is_set():
            raise Ending
        self.batch = batch
        try:
            super().run_batch(df, batch)
        except Exception as problem:
            if self._cut_off:  # what Spark says of it is long, and of no use to anybody
                raise Ending from None
            self.failure = problem
            raise
        finally:
            self.batch = None

    def end(self, query: StreamingQuery, grace: float = float("inf")) -> None:
        """Let the running batch end, if that takes no more than so many seconds, and then the
        query. A batch that is stopped so is done again at the next start.

        After a batch Spark notes that it is done; stopped before that, it would hand it over again.
        But a trigger without a batch can also be one that waits for its source, and a source that
        does not answer is no reason to stay.
        """
        self.ending.set()
        patience = time.monotonic() + NOTING
        latest = time.monotonic() + grace
        while query.isActive and time.monotonic() < latest:
            if self.batch is not None:
                patience = time.monotonic() + NOTING
            elif not query.status["isTriggerActive"] or time.monotonic() > patience:
                break
            time.sleep(PAUSE)
        self._cut_off = self.batch is not None
        query.stop()

    def check(self, query: StreamingQuery) -> None:
        """TidingsError in one sentence, if the query ended because something failed."""
        if self._cut_off:  # what failed is the batch that was stopped
            return
        if self.failure is not None:
            raise TidingsError(_failure_sentence(self.failure)) from self.failure
        problem = query.exception()
        if problem is not None and not self.ending.is_set():
            raise TidingsError(_failure_sentence(problem)) from problem


def _failure_sentence(problem: Exception) -> str:
    sentence = sentence_of(problem)
    return sentence if isinstance(problem, TidingsError) else f"the pipeline failed: {sentence}"
