"""tidings on Spark: tables and streams are tagged, subscriptions loaded, the past is tested; a
session, sources, sinks.

The modules are loaded when a name is first used: `import tidings.spark` stays cheap, and
`python -m tidings.spark.java` finds its own module unloaded.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidings.spark.backtesting import backtest
    from tidings.spark.java import java_home
    from tidings.spark.kafka import kafka_jars, kafka_settings
    from tidings.spark.loading import build_snapshot, subscriptions
    from tidings.spark.parquet import tag_parquet
    from tidings.spark.rendezvous import Target, hand_over
    from tidings.spark.session import local_session
    from tidings.spark.sources import register
    from tidings.spark.tagging import tag

__all__ = [
    "Target",
    "backtest",
    "build_snapshot",
    "hand_over",
    "java_home",
    "kafka_jars",
    "kafka_settings",
    "local_session",
    "register",
    "subscriptions",
    "tag",
    "tag_parquet",
]

_HOMES = {
    "Target": "tidings.spark.rendezvous",
    "backtest": "tidings.spark.backtesting",
    "build_snapshot": "tidings.spark.loading",
    "hand_over": "tidings.spark.rendezvous",
    "java_home": "tidings.spark.java",
    "kafka_jars": "tidings.spark.kafka",
    "kafka_settings": "tidings.spark.kafka",
    "local_session": "tidings.spark.session",
    "register": "tidings.spark.sources",
    "subscriptions": "tidings.spark.loading",
    "tag": "tidings.spark.tagging",
    "tag_parquet": "tidings.spark.parquet",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
