"""How a pipeline is ended: what is waited for, and what is not. Without Spark."""

from __future__ import annotations

import threading
import time
from typing import Any, cast

import pytest

from tidings.spark.pipeline import stoppable_pipeline
from tidings.spark.pipeline.stoppable_pipeline import StoppablePipeline


class Query:
    """A query whose trigger is at work until `stop`, or until a test says otherwise."""

    def __init__(self) -> None:
        self.isActive = True
        self.status = {"isTriggerActive": True}
        self.stopped_at: float | None = None

    def stop(self) -> None:
        self.isActive = False
        self.stopped_at = time.monotonic()


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> StoppablePipeline:
    monkeypatch.setattr(stoppable_pipeline, "NOTING", 0.2)
    watched = StoppablePipeline.__new__(StoppablePipeline)
    watched.ending, watched.batch, watched.failure = threading.Event(), None, None
    return watched


def ended(watched: StoppablePipeline, query: Query) -> threading.Thread:
    thread = threading.Thread(target=watched.end, args=(cast(Any, query),), daemon=True)
    thread.start()
    return thread


def test_a_source_that_does_not_answer_does_not_keep_it(watched: StoppablePipeline) -> None:
    query = Query()
    thread = ended(watched, query)
    thread.join(60)

    assert watched.ending.is_set()
    assert not query.isActive


def test_a_batch_is_waited_for_and_so_is_what_spark_notes_of_it(watched: StoppablePipeline) -> None:
    query = Query()
    watched.batch = 3
    thread = ended(watched, query)
    thread.join(0.6)
    assert query.isActive
    over = time.monotonic()
    watched.batch = None
    thread.join(60)

    assert query.stopped_at is not None
    assert query.stopped_at - over >= 0.15


def test_nothing_is_waited_for_between_two_triggers(
    watched: StoppablePipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stoppable_pipeline, "NOTING", 60.0)
    query = Query()
    query.status["isTriggerActive"] = False
    ended(watched, query).join(30)

    assert not query.isActive
