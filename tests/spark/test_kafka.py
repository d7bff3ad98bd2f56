"""The jars of Kafka: which belong to a PySpark, where they come from, and what is said if they
can't be had. test_kafka_broker.py runs them."""

from __future__ import annotations

import hashlib
import os
import re
import urllib.request
from io import BytesIO
from pathlib import Path
from urllib.error import URLError

import pytest
from tests.spark.test_masters import settings

from tidings.model import EnvironmentProblem
from tidings.spark.pipeline.masters import need_kafka
from tidings.spark.pipeline.settings import KafkaSink, SparkSettings
from tidings.spark.session import kafka, maven

TOP = Path(__file__).parents[2]
FAKE = kafka.Connector("9.9.9", "9.0.0", "1.0", "2.0")
NAMES = [
    "spark-sql-kafka-0-10_2.13-9.9.9.jar",
    "spark-token-provider-kafka-0-10_2.13-9.0.0.jar",
    "kafka-clients-1.0.jar",
    "commons-pool2-2.0.jar",
]
# A Maven that copies what the real one would fetch, and keeps the pom that it was given.
MAVEN = """\
#!/bin/sh
cp "$4" {kept}
for one in "$@"; do case "$one" in -DoutputDirectory=*) out=${{one#*=}};; esac; done
mkdir "$out"
for name in {names}; do printf %s "$name" > "$out/$name"; done
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and one PySpark in the table. The content of each jar is its name."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(kafka, "CONNECTORS", {"9.8.0": FAKE, "9.9.9": FAKE})
    digests = [hashlib.sha256(name.encode()).hexdigest() for name in NAMES]
    known = [name.removesuffix(".jar").rsplit("-", 1) for name in NAMES]
    found = {":".join(one): digest for one, digest in zip(known, digests, strict=True)}
    monkeypatch.setattr(kafka, "_DIGESTS", found)
    monkeypatch.setattr(urllib.request, "urlopen", None)
    monkeypatch.setenv("PATH", "")
    return tmp_path / "tidings" / "jars"


def write_jars(folder: Path) -> list[Path]:
    folder.mkdir(parents=True)
    for name in NAMES:
        (folder / name).write_text(name)
    return [folder / name for name in NAMES]


# -- the table ---------------------------------------------------------------------------------


def test_the_tested_pyspark_has_a_connector() -> None:
    [pinned] = re.findall(r"^pyspark==(.+)$", (TOP / "constraints.txt").read_text(), re.MULTILINE)

    assert pinned in kafka.CONNECTORS
    assert f'SPARK = "pyspark=={pinned}"' in (TOP / "tools" / "lock.py").read_text()


def test_every_jar_of_the_table_has_a_digest() -> None:
    used = {
        coordinate.split(":", 1)[1]
        for row in kafka.CONNECTORS.values()
        for coordinate, digest in row.coordinates.items()
        if re.fullmatch("[0-9a-f]{64}", digest)
    }

    assert used == set(kafka._DIGESTS)


def test_the_page_has_the_table() -> None:
    page = (TOP / "docs" / "pipelines.md").read_text()
    rows = re.findall(r"^\| (4\.[\d.]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$", page,
                      re.MULTILINE)  # fmt: skip

    assert {one[0]: one[1:] for one in rows} == kafka.CONNECTORS


@pytest.mark.usefixtures("cache")
def test_a_pyspark_without_a_connector() -> None:
    sentence = (
        r"^there is no known Kafka connector for PySpark 9\.9\.10; install PySpark 9\.8\.0 or "
        r"9\.9\.9, or name the jars of another connector in Spark's setting spark\.jars$"
    )

    with pytest.raises(EnvironmentProblem, match=sentence):
        kafka.kafka_settings("9.9.10")


@pytest.mark.usefixtures("cache")
def test_check_looks_into_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    sink = KafkaSink("s", "t")
    monkeypatch.setattr(kafka, "_spark_version", lambda: "9.9.10")

    need_kafka(settings(SparkSettings()))  # it has no Kafka
    own = {"spark.jars.packages": "org.apache.spark:spark-sql-kafka-0-10_2.13:9.9.10"}
    need_kafka(settings(SparkSettings(settings=own), sink))
    with pytest.raises(EnvironmentProblem, match=r"no known Kafka connector for PySpark 9\.9\.10"):
        need_kafka(settings(SparkSettings(), sink))


def test_a_spark_that_has_the_connector(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "spark-sql-kafka-0-10_2.13-9.9.10.jar").touch()
    monkeypatch.setattr(kafka, "_spark_home", lambda: tmp_path)
    monkeypatch.setattr(kafka, "_spark_version", lambda: "9.9.10")

    assert kafka.kafka_settings() == {}


# -- where they come from ----------------------------------------------------------------------


def test_jars_come_from_the_cache(cache: Path) -> None:
    jars = write_jars(cache / "spark-kafka-9.9.9")  # for example copied from another machine

    assert kafka.kafka_jars("9.9.9") == jars
    assert kafka.kafka_settings("9.9.9") == {"spark.jars": ",".join(one.as_uri() for one in jars)}


def test_a_jar_that_was_altered_or_is_missing(cache: Path) -> None:
    folder = cache / "spark-kafka-9.9.9"
    jars = write_jars(folder)
    jars[2].write_text("something else")
    with pytest.raises(
        EnvironmentProblem, match=rf"^{jars[2]}: found SHA-256 .+; remove {folder}, and"
    ):
        kafka.kafka_jars("9.9.9")
    jars[2].unlink()
    with pytest.raises(EnvironmentProblem, match=rf"^{jars[2]} can't be read: No such file"):
        kafka.kafka_jars("9.9.9")


def test_maven_fetches_exactly_these(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, kept = tmp_path / "mvn", tmp_path / "pom"
    program.write_text(MAVEN.format(kept=kept, names=" ".join(NAMES)))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    jars = kafka.kafka_jars("9.9.9")

    assert [jar.read_text() for jar in jars] == NAMES
    assert kept.read_text().count("<exclusion><groupId>*</groupId>") == 4
    assert [one.name for one in cache.iterdir()] == ["spark-kafka-9.9.9"]
    program.unlink()
    assert kafka.kafka_jars("9.9.9") == jars


def test_without_maven_they_are_downloaded(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def open_it(address: str, timeout: float) -> BytesIO:
        asked.append(address)
        return BytesIO(address.rpartition("/")[2].encode())

    monkeypatch.setattr(urllib.request, "urlopen", open_it)

    assert [jar.read_text() for jar in kafka.kafka_jars("9.9.9")] == NAMES
    assert asked[3] == f"{maven.CENTRAL}/org/apache/commons/commons-pool2/2.0/commons-pool2-2.0.jar"
    assert [one.name for one in cache.iterdir()] == ["spark-kafka-9.9.9"]


def test_a_download_that_is_not_what_was_asked_for(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(urllib.request, "urlopen", lambda *_, **__: BytesIO(b"a page of a proxy"))

    with pytest.raises(EnvironmentProblem, match=r"found SHA-256 .+ask the operator of"):
        kafka.kafka_jars("9.9.9")
    assert list(cache.iterdir()) == []


def test_without_maven_central(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def open_it(*_: object, **__: object) -> None:
        raise URLError("Network is unreachable")

    monkeypatch.setattr(urllib.request, "urlopen", open_it)

    with pytest.raises(
        EnvironmentProblem, match=r"9\.9\.9\.jar can't be fetched: Network is unreachable; install"
    ):
        kafka.kafka_jars("9.9.9")
    assert list(cache.iterdir()) == []


def test_what_maven_cannot_get(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "mvn"
    program.write_text("#!/bin/sh\necho '[ERROR] Failed: Could not find it. -> [Help 1]'\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    with pytest.raises(
        EnvironmentProblem, match=r"^Maven could not fetch a:b:1: Could not find it$"
    ):
        maven.fetch_jars({"a:b:1": "0"}, cache / "1")
    assert list(cache.iterdir()) == []
