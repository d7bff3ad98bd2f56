""""""

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
