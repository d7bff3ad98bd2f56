"""A pipeline that can be stopped between two batches, and that says why it failed.

Stopping a query in the middle of a batch is harmless, as the batch is repeated, but it wastes work.
So the running batch may finish, unless that takes too long, and the next one is refused before
anything of it is written. Its rows are in Spark's checkpoint by then, so Spark will repeat it.
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
NOTING = 5.0  # seconds for Spark to record a finished batch, when none is running


class Ending(Exception):
    """A batch was not begun, because the pipeline is stopping."""


class StoppablePipeline(Pipeline):
    """A pipeline for `tidings pipeline run`."""

    def __init__(
        self, settings: Settings, spark: SparkSession, on_batch: BatchListener = lambda _a, _b: None
    ) -> None:
        super().__init__(settings, spark, on_batch)
        self.ending = threading.Event()
        """Once set, no further batch begins."""
        self.batch: int | None = None
        """The running batch."""
        self.failure: Exception | None = None
        self._cut_off = False  # in the middle of a batch

    def run_batch(self, df: DataFrame, batch: int) -> None:
        if self.ending.is_set():
            raise Ending
        self.batch = batch
        try:
            super().run_batch(df, batch)
        except Exception as problem:
            if self._cut_off:  # Spark's error is long and helps nobody
                raise Ending from None
            self.failure = problem
            raise
        finally:
            self.batch = None

    def end(self, query: StreamingQuery, grace: float = float("inf")) -> None:
        """Stop the query after the running batch, or after `grace` seconds. A batch that is cut off
        is repeated at the next start.

        After a batch, Spark records that it is done; a query stopped before that would hand it over
        again. But an active trigger without a batch may also be waiting for its source, and a
        source that does not answer must not delay the end.
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
        """Raise TidingsError, in one sentence, if the query ended because of a failure."""
        if self._cut_off:  # the failure is that of the batch that was cut off
            return
        if self.failure is not None:
            raise TidingsError(_failure_sentence(self.failure)) from self.failure
        problem = query.exception()
        if problem is not None and not self.ending.is_set():
            raise TidingsError(_failure_sentence(problem)) from problem


def _failure_sentence(problem: Exception) -> str:
    sentence = sentence_of(problem)
    return sentence if isinstance(problem, TidingsError) else f"the pipeline failed: {sentence}"
