"""Which session a pipeline file asks for, and what the jars of Kafka do to it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from tidings.model import TidingsError
from tidings.snapshots import Snapshot
from tidings.spark.pipeline import masters
from tidings.spark.pipeline.settings import (
    KafkaSink,
    OutboxSettings,
    Rate,
    Settings,
    SparkSettings,
    Subscriptions,
)
from tidings.spark.session.session import is_local_master
from tidings.spark.tagging.tagging import place_snapshot

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def settings(spark: SparkSettings, *sinks: KafkaSink) -> Settings:
    return Settings(
        "x", Rate(), Subscriptions(log="l"), OutboxSettings("o"), spark=spark, sinks=list(sinks),
        folder=Path(),
    )  # fmt: skip


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What sessions were asked for."""
    found: list[Any] = []
    monkeypatch.setattr(masters, "local_session", lambda *a, **c: found.append(("local", *a, c)))
    monkeypatch.setattr(masters, "cluster_session", lambda *a, **c: found.append((*a, c)))
    monkeypatch.setattr(masters, "kafka_settings", lambda: {"spark.jars": "kafka.jar"})
    monkeypatch.setattr(masters, "_is_running", lambda: False)
    monkeypatch.setattr("os.cpu_count", lambda: 12)
    return found


@pytest.mark.parametrize(
    ("master", "expected"),
    [
        ("local", ("local", "x", 1, {})),
        ("local[3]", ("local", "x", 3, {})),
        ("local[*]", ("local", "x", 12, {})),
        ("local[2,4]", ("local", "x", 2, {"spark.master": "local[2,4]"})),
        ("local[*, 3]", ("local", "x", 12, {"spark.master": "local[12,3]"})),
        ("spark://host:7077", ("x", "spark://host:7077", {})),
    ],
)
def test_masters(asked: list[Any], master: str, expected: tuple[Any, ...]) -> None:
    masters.session_for(settings(SparkSettings(master)))
    assert asked == [expected]


@pytest.mark.parametrize(
    ("master", "here"),
    [
        ("local", True),
        ("local[*]", True),
        ("local-cluster[2,1,1024]", True),
        ("spark://localhost:7077", True),
        ("spark://127.0.0.1:7077", True),
        ("spark://127.0.0.1:7077,10.0.0.2:7077", False),
        ("spark://localhost.example:7077", False),
        ("spark://10.0.0.1:7077", False),
        ("k8s://https://127.0.0.1:6443", False),
        ("yarn", False),
    ],
)
def test_which_masters_are_surely_on_this_machine(master: str, here: bool) -> None:
    assert is_local_master(master) is here


def test_a_snapshot_in_a_temporary_folder_is_not_for_other_machines(tmp_path: Path) -> None:
    spark = SimpleNamespace(_sc=SimpleNamespace(master="spark://10.0.0.1:7077"))
    built = Snapshot.build({1: "a > 1"})
    with pytest.raises(TidingsError, match="in a folder that all of them can read"):
        place_snapshot(built, spark)
    built.save(tmp_path / "s")
    assert place_snapshot(tmp_path / "s", spark)[1] == str(tmp_path / "s")


def test_the_jars_of_kafka_come_beside_others(asked: list[Any]) -> None:
    given = SparkSettings(settings={"spark.jars": "mine.jar", "spark.x": "1"})
    masters.session_for(settings(given, KafkaSink("s", "t")))
    expected = {"spark.jars": "kafka.jar,mine.jar", "spark.x": "1"}
    assert asked == [("local", "x", 2, {"spark.master": "local[2,4]", **expected})]


@pytest.mark.parametrize(
    ("key", "own"),
    [
        ("spark.jars", "mine.jar,/opt/spark-sql-kafka-0-10_2.13-4.3.0.jar"),
        ("spark.jars.packages", "org.apache.spark:spark-sql-kafka-0-10_2.13:4.3.0"),
    ],
)
def test_a_connector_of_the_users_own(asked: list[Any], key: str, own: str) -> None:
    masters.session_for(settings(SparkSettings(settings={key: own}), KafkaSink("s", "t")))
    assert asked == [("local", "x", 2, {"spark.master": "local[2,4]", key: own})]


@pytest.mark.spark
def test_a_running_session_without_the_connector(spark: SparkSession) -> None:
    given = settings(SparkSettings(), KafkaSink("s", "t"))
    sentence = r"^the running Spark session has no Kafka connector; start it with local_session"
    with pytest.raises(TidingsError, match=sentence):
        masters.session_for(given)


def test_what_spark_says_becomes_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("no such host\nat java")

    monkeypatch.setattr(masters, "cluster_session", fail)
    with pytest.raises(
        TidingsError, match=r"^can.t start a Spark session at yarn: RuntimeError: no such host$"
    ):
        masters.session_for(settings(SparkSettings("yarn")))
