"""How `make test` deals the tests out to its processes.

One by one, each to the process that is free: most take milliseconds, some half a minute. But the
files that share the Spark session stay together, in one process and first of all: to start a
session and warm its Java takes longer than many of their tests. Both processes would pay for it.
Files with a fixture for the whole module stay together too, in any process: otherwise each process
would make it again. One of them starts a Kafka broker.

xdist groups by marks (`--dist loadgroup`) only where pytest lets it rename tests; pytest 9.2 does
not.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from xdist.scheduler import LoadScopeScheduling

HOME = Path(__file__).parents[1]
MODULE = 'scope="module"'
SPARK = re.compile(r"\bspark: SparkSession\b|usefixtures\(\"spark\"\)")


@cache
def shares_spark(file: str) -> bool:
    """Whether tests of a file take the Spark session."""
    return SPARK.search(text_of(file)) is not None


@cache
def shares_fixture(file: str) -> bool:
    """Whether a file has a fixture that all of its tests share."""
    return MODULE in text_of(file)


def text_of(file: str) -> str:
    path = HOME / file
    return path.read_text() if path.exists() else ""


class Dealing(LoadScopeScheduling):  # type: ignore[misc]  # it ships no types
    """Scopes, as xdist calls what stays together, by size: that of Spark is the first."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        if shares_spark(file):
            return "spark"
        return file if shares_fixture(file) else nodeid
