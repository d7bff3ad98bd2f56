"""tidings on Spark: tags tables and streams, compiles subscriptions, backtests filters.

    source ──> pipeline: decode, match, number, commit ──> outbox ──> sinks
                  ^ a version of the subscriptions: snapshot + changes

    tagging/     tags the rows of tables and of Parquet files
    loading/     compiles tables and change logs of subscriptions into snapshots
    pipeline/    reads the pipeline file, and runs micro-batches from source to sinks
    outbox/      keeps the results for subscribers on disk, each batch exactly once
    backtests/   counts how often filters would have fired on past data
    channel/     subscriptions from a channel of the network, and rows for its subscribers
    feeds/       RSS and Atom as a source
    session/     Java, sessions, Kafka, packing for clusters
    sources.py   registers our source with a session

Users get the names exported by this module (docs/spark.md, docs/pipelines.md); the names that the
subfolders export are for cli and studies. A module is loaded when one of its names is first used.
Late loading keeps `import tidings.spark` cheap, and lets `python -m tidings.spark.session.java` run
without a warning that its module is already loaded. Start at tagging/tagging.py, then
pipeline/pipeline.py.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidings.spark.backtests.backtesting import backtest
    from tidings.spark.loading.loading import build_snapshot, subscriptions
    from tidings.spark.outbox.outbox_tables import read_outbox
    from tidings.spark.pipeline.live_tagging import tag_live
    from tidings.spark.session.java import java_home
    from tidings.spark.session.kafka import kafka_jars, kafka_settings
    from tidings.spark.session.session import local_session
    from tidings.spark.session.shipping import pack, shipped_settings
    from tidings.spark.sources import register
    from tidings.spark.tagging.parquet import tag_parquet
    from tidings.spark.tagging.tagging import tag

__all__ = [
    "backtest",
    "build_snapshot",
    "java_home",
    "kafka_jars",
    "kafka_settings",
    "local_session",
    "pack",
    "read_outbox",
    "register",
    "shipped_settings",
    "subscriptions",
    "tag",
    "tag_live",
    "tag_parquet",
]

_HOMES = {
    "backtest": "tidings.spark.backtests.backtesting",
    "build_snapshot": "tidings.spark.loading.loading",
    "java_home": "tidings.spark.session.java",
    "kafka_jars": "tidings.spark.session.kafka",
    "kafka_settings": "tidings.spark.session.kafka",
    "local_session": "tidings.spark.session.session",
    "pack": "tidings.spark.session.shipping",
    "read_outbox": "tidings.spark.outbox.outbox_tables",
    "register": "tidings.spark.sources",
    "shipped_settings": "tidings.spark.session.shipping",
    "subscriptions": "tidings.spark.loading.loading",
    "tag": "tidings.spark.tagging.tagging",
    "tag_live": "tidings.spark.pipeline.live_tagging",
    "tag_parquet": "tidings.spark.tagging.parquet",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
