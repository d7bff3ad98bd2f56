"""Kafka: jars on demand, and Spark against a real broker where both can be had."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from contextlib import suppress
from pathlib import Path

import pytest
from tests.spark.kafka_broker import broker

from tidings.model import EnvironmentProblem
from tidings.spark.session import kafka, maven

# The connector to test with, where the one for this PySpark is not published.
VERSION = os.environ.get("TIDINGS_KAFKA_VERSION")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "tidings" / "jars"


def run_job(version: str, servers: str, folder: Path) -> tuple[int, str]:
    script = str(Path(__file__).with_name("kafka_job.py"))
    command = [sys.executable, script, version, servers, str(folder)]
    # A group of its own: killing the Python of a driver would leave its Java running.
    job = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        _, errors = job.communicate(timeout=240)
        return job.returncode, errors
    finally:
        with suppress(ProcessLookupError):
            os.killpg(job.pid, signal.SIGKILL)
        job.communicate()


@pytest.mark.spark
def test_streams_from_and_to_a_topic(tmp_path: Path) -> None:
    import pyspark

    try:
        kafka.kafka_settings(VERSION)
        with broker(tmp_path) as servers:
            code, errors = run_job(VERSION or pyspark.__version__, servers, tmp_path)
    except EnvironmentProblem as problem:
        pytest.skip(str(problem))
    assert code == 0, errors[-3000:]

    found = json.loads((tmp_path / "result.json").read_text())

    assert found == [f"copy of {number}" for number in range(8)]


def test_jars_come_from_the_cache(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = cache / "9.9.9"
    folder.mkdir(parents=True)
    for name in ("spark-sql-kafka-0-10_2.13-9.9.9.jar", "scala-library-2.13.99.jar"):
        (folder / name).touch()
    monkeypatch.setattr(urllib.request, "urlopen", None)
    ours = folder / "spark-sql-kafka-0-10_2.13-9.9.9.jar"

    assert kafka.kafka_jars("9.9.9") == [ours]  # PySpark has a Scala of its own
    assert kafka.kafka_settings("9.9.9") == {"spark.jars": ours.as_uri()}


@pytest.mark.usefixtures("cache")
def test_without_maven_central(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maven, "CENTRAL", "http://127.0.0.1:1")

    with pytest.raises(EnvironmentProblem, match="Maven Central cannot be reached"):
        kafka.kafka_jars()


@pytest.mark.usefixtures("cache")
def test_a_version_that_is_not_published(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka, "list_versions", lambda *_: ["4.0.0", "4.2.0"])

    with pytest.raises(EnvironmentProblem, match=r"its newest version is 4\.2\.0"):
        kafka.kafka_settings("9.9.9")


def test_without_maven(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka, "list_versions", lambda *_: ["4.2.0"])
    monkeypatch.setenv("PATH", "")

    assert kafka.kafka_settings("4.2.0") == {
        "spark.jars.packages": "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
        "spark.jars.ivy": str(cache / "ivy"),
    }
    with pytest.raises(EnvironmentProblem, match="mvn was not found; install Maven"):
        kafka.kafka_jars("4.2.0")


def test_what_ivy_has_is_not_asked_for_again(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maven, "CENTRAL", "http://127.0.0.1:1")
    monkeypatch.setenv("PATH", "")
    jars = cache / "ivy" / "jars"
    jars.mkdir(parents=True)
    (jars / "org.apache.spark_spark-sql-kafka-0-10_2.13-4.1.0.jar").touch()
    with pytest.raises(EnvironmentProblem, match="Maven Central cannot be reached"):
        kafka.kafka_settings("4.2.0")  # another version
    (jars / "org.apache.spark_spark-sql-kafka-0-10_2.13-4.2.0.jar").touch()

    assert kafka.kafka_settings("4.2.0") == {
        "spark.jars.packages": "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",
        "spark.jars.ivy": str(cache / "ivy"),
    }


def test_what_maven_cannot_get(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "mvn"
    program.write_text("#!/bin/sh\necho '[ERROR] Failed: Could not find it. -> [Help 1]'\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    with pytest.raises(
        EnvironmentProblem, match=r"^Maven could not fetch a:b:1: Could not find it\.$"
    ):
        maven.fetch_jars(["a:b:1"], cache / "1")
    assert list(cache.iterdir()) == []
