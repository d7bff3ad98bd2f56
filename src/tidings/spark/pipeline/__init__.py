""""""

from tidings.spark.pipeline.inspection import inspect, need_log, need_places
from tidings.spark.pipeline.masters import need_driver, session_at, session_for
from tidings.spark.pipeline.pipeline import Pipeline
from tidings.spark.pipeline.settings import Settings, known_columns, load_settings
from tidings.spark.pipeline.status import Standing, standing
from tidings.spark.pipeline.stoppable_pipeline import Watched

__all__ = [
    "Pipeline",
    "Settings",
    "Standing",
    "Watched",
    "inspect",
    "known_columns",
    "load_settings",
    "need_driver",
    "need_log",
    "need_places",
    "session_at",
    "session_for",
    "standing",
]
