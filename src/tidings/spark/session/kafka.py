"""Kafka for Spark. PySpark does not include the connector; its jars come from Maven Central.

    spark = local_session("study", cores=2, **kafka_settings())
    spark.readStream.format("kafka").option("kafka.bootstrap.servers", ...)

Jars must be named when the session starts; a running session can't load more.

The connector uses internals of Spark, so not every release of the connector runs with every
PySpark. CONNECTORS is the only place that says which releases work together; each row was tested
with a broker. Everything else that the connector needs is in PySpark.
"""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from tidings.model import EnvironmentProblem
from tidings.spark.session.maven import fetch_jars, jars_folder

CONNECTOR = "spark-sql-kafka-0-10"
_JARS = (
    f"org.apache.spark:{CONNECTOR}_2.13",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13",
    "org.apache.kafka:kafka-clients",
    "org.apache.commons:commons-pool2",
)


class Connector(NamedTuple):
    """The versions of the four jars, in the order of _JARS."""

    connector: str
    token_provider: str
    clients: str
    pool: str

    @property
    def coordinates(self) -> dict[str, str]:
        """group:artifact:version of each jar, with its SHA-256."""
        named = [f"{jar}:{version}" for jar, version in zip(_JARS, self, strict=True)]
        return {one: _DIGESTS[one.split(":", 1)[1]] for one in named}


# The connectors by release of PySpark; the newest comes last. For the releases 4.1.4, 4.2.1 and
# 4.3.0 of PySpark, no connector was published, or not on every mirror. The connector of an
# earlier release works with these three, because every class that it refers to still exists. Only
# version 4.0.0 of the token provider was found. With later releases of PySpark, one thing fails:
# the token provider can't print the warning that there is no delegation token (Kerberos), because a
# class is missing; every other class that the provider refers to exists. The versions of Kafka's
# client and of the pool are those that the connector's POM names.
CONNECTORS = {
    "4.1.0": Connector("4.1.0", "4.0.0", "3.9.1", "2.12.1"),
    "4.1.1": Connector("4.1.1", "4.0.0", "3.9.1", "2.12.1"),
    "4.1.2": Connector("4.1.2", "4.0.0", "3.9.1", "2.12.1"),
    "4.1.3": Connector("4.1.3", "4.0.0", "3.9.1", "2.12.1"),
    "4.1.4": Connector("4.1.3", "4.0.0", "3.9.1", "2.12.1"),
    "4.2.0": Connector("4.2.0", "4.0.0", "3.9.2", "2.13.1"),
    "4.2.1": Connector("4.2.0", "4.0.0", "3.9.2", "2.13.1"),
    "4.3.0": Connector("4.2.0", "4.0.0", "3.9.2", "2.13.1"),
}

_DIGESTS = {
    "spark-sql-kafka-0-10_2.13:4.1.0":
        "a335b885043bbe0d553ab70738418a45eb4cda94a28718e4b62a347046c03723",
    "spark-sql-kafka-0-10_2.13:4.1.1":
        "9c1ce986f548e6b1dcb0e2dfe2f253a0bc58f2232a32a0c9c6c674dd25a8570c",
    "spark-sql-kafka-0-10_2.13:4.1.2":
        "1dce8c690aea67bba8942eaa0280aa5dbc16e0c7c64bd0b1777b919b36d7ab2e",
    "spark-sql-kafka-0-10_2.13:4.1.3":
        "cb31ffd9c8f5527dba061db8af671d295562092e4f3f5ff42fc249fab8a8fde6",
    "spark-sql-kafka-0-10_2.13:4.2.0":
        "64539c45e5d39f7ddb747312c239f38f5208d08c1a0ddf7d70beb2fbd9373705",
    "spark-token-provider-kafka-0-10_2.13:4.0.0":
        "f2be3b76f9e6cbe63379d4e4e0dc14f59dbf056ae2ad16ff15ac108004c86767",
    "kafka-clients:3.9.1":
        "7568b998572d256f0b7bc0afdc1b7a2588b8b08415c62ce314c864a6851ae9d9",
    "kafka-clients:3.9.2":
        "014b4ef36884478a932641818b080c36a8f8e2e92dc771e800c9d2694f4f83d8",
    "commons-pool2:2.12.1":
        "5273c8bc8c0dca2211175c0d27efbd7228efae99689aac001a8e1ef8e872e9ef",
    "commons-pool2:2.13.1":
        "f77a5060d6936a9144023584232f9de3f2248f1abfe156e9d31795f18770674f",
}  # fmt: skip


def kafka_jars(version: str | None = None) -> list[Path]:
    """Return the jars of the connector for this PySpark, and fetch them if they are not cached.

    `version` is the release of PySpark, by default the installed one. The list is empty if
    PySpark's own folder of jars contains a connector.
    """
    chosen = choose_connector(version)
    if chosen is None:
        return []
    folder = jars_folder() / f"spark-kafka-{version or _spark_version()}"
    return fetch_jars(chosen.coordinates, folder)


def kafka_settings(version: str | None = None) -> dict[str, str]:
    """Return settings for `local_session` that make Kafka available."""
    jars = kafka_jars(version)
    return {"spark.jars": ",".join(jar.as_uri() for jar in jars)} if jars else {}


def choose_connector(version: str | None = None) -> Connector | None:
    """The row of the table for a release of PySpark, by default the installed one; None if its jars
    include a connector, as in some images for clusters; raises EnvironmentProblem if there is no
    row."""
    if version is None and any((_spark_home() / "jars").glob(f"{CONNECTOR}*.jar")):
        return None
    version = version or _spark_version()
    if version not in CONNECTORS:
        *others, newest = CONNECTORS
        raise EnvironmentProblem(
            f"there is no known Kafka connector for PySpark {version}; install PySpark "
            f"{', '.join(others)} or {newest}, or name the jars of another connector in Spark's "
            f"setting spark.jars"
        )
    return CONNECTORS[version]


def _spark_version() -> str:
    return str(_spark().__version__)


def _spark_home() -> Path:
    return Path(str(_spark().__file__)).parent


def _spark() -> ModuleType:
    try:
        import pyspark
    except ImportError as error:
        raise EnvironmentProblem(
            "PySpark is not installed; install tidings with the extra `tidings[spark]`"
        ) from error
    return pyspark
