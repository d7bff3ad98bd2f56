"""Kafka for Spark. PySpark does not include the connector; it is fetched from Maven Central.

    spark = local_session("study", cores=2, **kafka_settings())
    spark.readStream.format("kafka").option("kafka.bootstrap.servers", ...)

Jars must be named when the session starts; a running session cannot load more.

The connector uses internals of Spark, so both must have the same version. It is published
separately from PySpark and may appear later. Another version is used only if the caller names it.
"""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

from tidings.model import EnvironmentProblem
from tidings.spark.session.maven import cache_folder, fetch_jars, has_maven, list_versions

GROUP = "org.apache.spark"
ARTIFACT = "spark-sql-kafka-0-10_2.13"


def kafka_jars(version: str | None = None) -> list[Path]:
    """Return the jars of the connector for this PySpark, and fetch them if they are not cached.

    Jars that PySpark itself includes, in any version, are left out: its own are loaded first.
    """
    version = version or _spark_version()
    folder = cache_folder() / version
    if not folder.is_dir():
        _check_version(version)
    own = {_artifact_of(jar) for jar in (_spark_home() / "jars").glob("*.jar")}
    jars = fetch_jars([f"{GROUP}:{ARTIFACT}:{version}"], folder)
    return [jar for jar in jars if _artifact_of(jar) not in own]


def kafka_settings(version: str | None = None) -> dict[str, str]:
    """Return settings for `local_session` that make Kafka available.

    Without Maven, Spark itself fetches the jars with Ivy when the first session starts. Later
    sessions find them in Ivy's cache and need no access to Maven Central.
    """
    version = version or _spark_version()
    if has_maven() or (cache_folder() / version).is_dir():
        return {"spark.jars": ",".join(jar.as_uri() for jar in kafka_jars(version))}
    ivy = cache_folder() / "ivy"
    # Ivy puts jars there once it has resolved everything that the connector needs
    if not (ivy / "jars" / f"{GROUP}_{ARTIFACT}-{version}.jar").is_file():
        _check_version(version)
    return {"spark.jars.packages": f"{GROUP}:{ARTIFACT}:{version}", "spark.jars.ivy": str(ivy)}


def published_versions() -> list[str]:
    """The versions of the connector that Maven Central has, oldest first."""
    return list_versions(GROUP, ARTIFACT)


def _check_version(version: str) -> None:
    """Raise EnvironmentProblem if Maven Central can't be reached or lacks the version."""
    published = published_versions()
    if version not in published:
        raise EnvironmentProblem(
            f"Maven Central has no Kafka connector for Spark {version}; "
            f"its newest version is {published[-1] if published else 'none'}."
        )


def _spark_version() -> str:
    return str(_spark().__version__)


def _spark_home() -> Path:
    return Path(str(_spark().__file__)).parent


def _spark() -> ModuleType:
    try:
        import pyspark
    except ImportError as error:
        raise EnvironmentProblem(
            "PySpark is not installed; install tidings with the extra `tidings[spark]`."
        ) from error
    return pyspark


def _artifact_of(jar: Path) -> str:
    """The artifact name of a jar: its file name without the version."""
    return re.sub(r"-\d[\w.\-]*$", "", jar.stem)
