"""Opens the session that a master or a pipeline file names: a local one, one on a cluster, or a
remote one."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from tidings.model import TidingsError
from tidings.spark.pipeline.settings import Kafka, KafkaSink, Settings
from tidings.spark.session.failures import sentence_of
from tidings.spark.session.kafka import CONNECTOR, choose_connector, kafka_settings
from tidings.spark.session.session import cluster_session, local_session, prepare_environment

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LOCAL = re.compile(r"local(?:\[(\d+|\*)(?:, *(\d+))?\])?")  # groups: cores, attempts per task


def session_for(settings: Settings) -> SparkSession:
    """Start the session of a pipeline, or return the one that already runs in this process."""
    given, config = settings.spark, dict(settings.spark.settings)
    there = uses_kafka(settings) and _is_running()
    if _wants_connector(settings) and not there:
        for key, value in kafka_settings().items():
            config[key] = f"{value},{config[key]}" if config.get(key) else value
    try:
        if given.remote is not None:
            return _connect(given.remote, config)
        spark = session_at(settings.name, given.master, **config)
        if there:
            _need_connector(spark)
        return spark
    except TidingsError:
        raise
    except Exception as problem:
        where = given.remote or given.master
        raise TidingsError(
            f"can't start a Spark session at {where}: {sentence_of(problem)}"
        ) from problem


def session_at(name: str, master: str, **config: str) -> SparkSession:
    """Start a session at a master. A local session runs in this process and one Java process.

    Executors of any other master may run on other machines, so the driver is not bound to
    127.0.0.1, where they could not reach it.
    """
    local = _LOCAL.fullmatch(master)
    if local is None:
        return cluster_session(name, master, **config)
    cores = os.cpu_count() or 1 if local[1] == "*" else int(local[1] or 1)
    if local[2]:
        config = {"spark.master": f"local[{cores},{local[2]}]"} | config
    return local_session(name, cores, **config)


def uses_kafka(settings: Settings) -> bool:
    """Whether a pipeline reads from Kafka or writes to it."""
    return any(isinstance(one, Kafka | KafkaSink) for one in (settings.source, *settings.sinks))


def need_kafka(settings: Settings) -> None:
    """Refuse a pipeline with Kafka if there is no connector for this PySpark."""
    if _wants_connector(settings):
        choose_connector()


def _wants_connector(settings: Settings) -> bool:
    """Whether a pipeline needs the connector, and does not name its own."""
    own = (settings.spark.settings.get(key, "") for key in ("spark.jars", "spark.jars.packages"))
    return uses_kafka(settings) and not any(CONNECTOR in jars for jars in own)


def _is_running() -> bool:
    """Whether this process already has a session; a running session can't load further jars."""
    prepare_environment()
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession() is not None


def _need_connector(spark: SparkSession) -> None:
    """Refuse a session without the Kafka connector now; otherwise a batch would be committed and
    the sink could not write it. `load` only looks for the classes; it does not contact a broker."""
    try:
        nobody = {"kafka.bootstrap.servers": "127.0.0.1:1", "subscribe": "none"}
        spark.read.format("kafka").options(**nobody).load()
    except Exception as problem:
        raise TidingsError(
            "the running Spark session has no Kafka connector; start it with "
            "local_session(..., **kafka_settings()), or stop it, so that tidings starts "
            "its own session"
        ) from problem


def need_driver(settings: Settings) -> None:
    """Refuse Spark Connect for a stream, because batches would run in the server's process, which
    does not have the pipeline, its log and its outbox. For tables, Spark Connect can be used."""
    if settings.spark.remote is not None:
        raise TidingsError(
            f"spark.remote: a pipeline can't run through Spark Connect ({settings.spark.remote}), "
            f"because its batches must run in this process; set spark.master instead"
        )


def _connect(url: str, config: dict[str, str]) -> SparkSession:
    prepare_environment()
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.remote(url)
    for key, value in config.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()
