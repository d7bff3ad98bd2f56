"""A pipeline that can be stopped between two batches, and that reports why it failed.

Stopping a query in the middle of a batch does no harm, because the batch is repeated, but it wastes
work. So the running batch is allowed to finish, unless that takes too long. The next batch is
refused before any of its files is written. When it is refused, its rows are already in Spark's
checkpoint, so Spark will repeat it.
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

PAUSE = 0.05  # seconds between two checks
NOTING = 5.0  # seconds for Spark to record a finished batch if no other batch is running


class Ending(Exception):
    """A batch was not started, because the pipeline is stopping."""


class StoppablePipeline(Pipeline):
    """A pipeline for `tidings pipeline run`."""

    def __init__(
        self, settings: Settings, spark: SparkSession, on_batch: BatchListener = lambda _a, _b: None
    ) -> None:
        super().__init__(settings, spark, on_batch)
        self.ending = threading.Event()
        """When this is set, no further batch begins."""
        self.batch: int | None = None
        """The running batch."""
        self.failure: Exception | None = None
        self._cut_off = False  # whether the query was stopped in the middle of a batch

    def run_batch(self, df: DataFrame, batch: int) -> None:
        if self.ending.is_set():
            raise Ending
        self.batch = batch
        try:
            super().run_batch(df, batch)
        except Exception as problem:
            if self._cut_off:  # Spark's error is long and not helpful
                raise Ending from None
            self.failure = problem
            raise
        finally:
            self.batch = None

    def end(self, query: StreamingQuery, grace: float = float("inf")) -> None:
        """Stop the query after the running batch, or after `grace` seconds. A batch that is cut off
        is repeated at the next start.

        After a batch, Spark records that the batch is done; if the query is stopped before the
        record is written, the batch is handed over again. So `end` waits while a trigger is active.
        But a trigger is also active while it waits for an unresponsive source, so if no batch is
        running, `end` waits at most NOTING seconds.
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
        self.interrupt()
        query.stop()

    def check(self, query: StreamingQuery) -> None:
        """Raise TidingsError, with a one-sentence message, if the query failed."""
        if self._cut_off:  # the batch failed because it was cut off
            return
        if self.failure is not None:
            raise TidingsError(_failure_sentence(self.failure)) from self.failure
        problem = query.exception()
        if problem is not None and not self.ending.is_set():
            raise TidingsError(_failure_sentence(problem)) from problem


def _failure_sentence(problem: Exception) -> str:
    sentence = sentence_of(problem)
    return sentence if isinstance(problem, TidingsError) else f"the pipeline failed: {sentence}"
