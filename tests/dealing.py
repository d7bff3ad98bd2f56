"""How `make test` deals the tests out to its processes.

One by one, each to the process that is free: most take milliseconds, some half a minute. But the
files that share the Spark session stay together, in one process and first of all: to start a
session and warm its Java takes longer than many of their tests. Both processes would pay for it.
The tests of Kafka stay together too, in either process: they share a broker.

xdist groups by marks (`--dist loadgroup`) only where pytest lets it rename tests; pytest 9.2 does
not.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from xdist.scheduler import LoadScopeScheduling

HOME = Path(__file__).parents[1]
BROKER = "tests/spark/test_kafka_broker.py"
SPARK = re.compile(r"\bspark: SparkSession\b|usefixtures\(\"spark\"\)")


@cache
def shares_spark(file: str) -> bool:
    """Whether tests of a file take the Spark session."""
    path = HOME / file
    return path.exists() and SPARK.search(path.read_text()) is not None


class Dealing(LoadScopeScheduling):  # type: ignore[misc]  # it ships no types
    """Scopes, as xdist calls what stays together, by size: that of Spark is the first."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return file if file == BROKER else "spark" if shares_spark(file) else nodeid
