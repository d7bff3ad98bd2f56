"""Pipelines: a TOML file, and micro-batches from a source through the outbox to sinks.

    pin the version ─> decode, match, count nodes ─> number, file ─> commit ─> sinks
                       one job, on the workers       the driver, or a job where there is much

    settings.py               the file, read and checked
    streams.py                sources: raw rows, and what they are to be read as
    subscription_source.py    a fixed snapshot, or a change log that is followed
    pipeline.py               one batch after the other
    sinks.py                  who else gets a batch once it is committed; kinds are in settings.py
    stoppable_pipeline.py, status.py, inspection.py    ending it, its status, what it would find
    masters.py                the session that the file asks for, with packages for source and sinks

Exported for cli and studies; users write a file and run `tidings pipeline` (docs/pipelines.md).
Start at pipeline.py.
"""

from tidings.spark.pipeline.inspection import inspect, need_log, need_places
from tidings.spark.pipeline.masters import need_driver, session_at, session_for
from tidings.spark.pipeline.pipeline import Pipeline
from tidings.spark.pipeline.settings import Settings, known_columns, load_settings
from tidings.spark.pipeline.status import PipelineStatus, read_status
from tidings.spark.pipeline.stoppable_pipeline import StoppablePipeline

__all__ = [
    "Pipeline",
    "PipelineStatus",
    "Settings",
    "StoppablePipeline",
    "inspect",
    "known_columns",
    "load_settings",
    "need_driver",
    "need_log",
    "need_places",
    "read_status",
    "session_at",
    "session_for",
]
