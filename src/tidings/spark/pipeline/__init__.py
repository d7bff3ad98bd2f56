"""Pipelines: a TOML file describes how micro-batches flow from a source through the outbox to
sinks.

    pin the version ─> decode, match, file ─> commit ─> accept: numbers ─> sinks
                       one job, on the workers

    settings.py               reads and checks the pipeline file
    source_streams.py         sources: raw rows, and how to decode them
    subscription_source.py    a fixed snapshot, or a change log that is followed
    inputs.py                 opens the subscriptions; checks that they fit the source's columns
    pipeline.py               runs the batches
    sinks.py                  hands batches to sinks: each kind of sink is a class in settings.py
                              and a branch in sinks.py (for channels: channel/handing_over.py)
    stoppable_pipeline.py     stops a pipeline between two batches
    status.py, inspection.py  the status of a pipeline; a check before it is started
    dead_letters.py           refused rows: reads them, and replays corrected ones
    live_tagging.py           tags a user's own stream with subscriptions that change
    masters.py                the session that the file names, with packages for source and sinks

The names exported here are for cli and studies; users write a file and run `tidings pipeline`
(docs/pipelines.md), or call `tidings.spark.tag_live`. Start at pipeline.py.
"""

from tidings.spark.pipeline.dead_letters import (
    Letter,
    LetterReplay,
    list_replayed,
    read_letters,
    replay_letters,
)
from tidings.spark.pipeline.inputs import RESERVED
from tidings.spark.pipeline.inspection import inspect, need_log, need_places
from tidings.spark.pipeline.masters import need_driver, session_at, session_for
from tidings.spark.pipeline.pipeline import Pipeline
from tidings.spark.pipeline.settings import Settings, known_columns, load_settings
from tidings.spark.pipeline.status import PipelineStatus, read_status
from tidings.spark.pipeline.stoppable_pipeline import StoppablePipeline

__all__ = [
    "RESERVED",
    "Letter",
    "LetterReplay",
    "Pipeline",
    "PipelineStatus",
    "Settings",
    "StoppablePipeline",
    "inspect",
    "known_columns",
    "list_replayed",
    "load_settings",
    "need_driver",
    "need_log",
    "need_places",
    "read_letters",
    "read_status",
    "replay_letters",
    "session_at",
    "session_for",
]
