"""Through Spark Connect, where the client has no JVM, tags and backtests are the same."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.spark

SCRIPT = """
import json, os, sys
from tidings.spark import backtest, java_home, tag
from tidings.snapshots import Snapshot
os.environ |= {"JAVA_HOME": str(java_home()), "PYSPARK_PYTHON": sys.executable,
               "SPARK_LOCAL_IP": "127.0.0.1"}
from pyspark.sql import SparkSession
settings = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2"}
spark = SparkSession.builder.remote("local[1]").config(map=settings).getOrCreate()
assert "connect" in type(spark).__module__
df = spark.createDataFrame([(1, 61, "EWR"), (2, 130, "JFK")], "n int, dep_delay int, origin string")
snapshot = Snapshot.build({"late": "dep_delay > 60", "Newark": "origin = 'EWR' AND dep_delay > 60"})
found = {output: [row[output] for row in tag(df, snapshot, output).orderBy("n").collect()]
         for output in ("nodes", "subscriptions", "pairs")}
fired = backtest(df, {"late": "dep_delay > 60", "very": "dep_delay > 100"}, samples=1)
found["fired"] = {name: int(fired.total(name)) for name in ("late", "very")}
print("found", json.dumps(found))
spark.stop()
"""


def test_tags_through_connect() -> None:
    pytest.importorskip("grpc")
    result = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=300, check=False
    )
    lines = [line for line in result.stdout.splitlines() if "found {" in line]
    assert lines, result.stderr[-2000:]
    found = json.loads(lines[-1].split("found ", 1)[1])
    assert found["nodes"] == [[2], [1]]
    assert [sorted(ids) for ids in found["subscriptions"]] == [["Newark", "late"], ["late"]]
    assert sorted(found["pairs"][:2]) == ["Newark", "late"]
    assert found["fired"] == {"late": 2, "very": 1}
