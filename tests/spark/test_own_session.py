"""A user's own SparkSession, in an environment that is not activated."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tidings.spark import java_home

pytestmark = pytest.mark.spark

JOB = """
from pyspark.sql import SparkSession

import tidings
from tidings.spark import backtest, build_snapshot, tag

settings = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2",
            "spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
spark = SparkSession.builder.master("local[1]").config(map=settings).getOrCreate()
rows = spark.createDataFrame([("EWR", 5), ("JFK", 70)], "origin string, delay int")
snapshot = tidings.Snapshot.build({"ana": "delay > 60", "ben": "origin = 'EWR'"})
print([list(row.subscriptions) for row in tag(rows, snapshot, "subscriptions").collect()])
wanted = spark.createDataFrame([("ana", "delay > 60")], "id string, filter string")
print(build_snapshot(wanted, FOLDER).stats()["subscriptions"])
print(backtest(rows, {"ana": "delay > 60"})["ana"].total)
"""
# In the same Java, because starting another takes seven seconds.
THEN = """
import os

spark.stop()
os.environ["PYSPARK_PYTHON"] = PYTHON3
spark = SparkSession.builder.master("local[1]").config(map=settings).getOrCreate()
rows = spark.createDataFrame([("EWR", 5), ("JFK", 70)], "origin string, delay int")
tag(rows, snapshot, "subscriptions").collect()
"""
# Workers of a cluster whose Python has everything but tidings.
WITHOUT_TIDINGS = """
import importlib.abc, sys

class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == "tidings" or name.startswith("tidings."):
            raise ModuleNotFoundError("No module named 'tidings'", name="tidings")

sys.meta_path.insert(0, Absent())
"""


def run(script: str, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    """Run a script with this Python, where `python3` on the PATH is one without tidings."""
    given = {name: value for name, value in os.environ.items() if not name.startswith("PYSPARK")}
    given |= {"PATH": f"{tmp_path}:/usr/bin:/bin", "JAVA_HOME": str(java_home())}
    given |= {"SPARK_LOCAL_IP": "127.0.0.1"}
    command = [sys.executable, "-c", script]
    return subprocess.run(
        command, env=given, capture_output=True, text=True, timeout=240, check=False
    )


def write_python3(folder: Path) -> Path:
    (folder / "sitecustomize.py").write_text(WITHOUT_TIDINGS)
    python = folder / "python3"
    python.write_text(
        f"#!/bin/sh\nPYTHONPATH={shlex.quote(str(folder))}:$PYTHONPATH "
        f'exec {shlex.quote(sys.executable)} "$@"\n'
    )
    python.chmod(0o755)
    return python


def test_workers_run_this_python_and_any_other_says_what_to_do(tmp_path: Path) -> None:
    python3 = write_python3(tmp_path)
    begin = f"FOLDER, PYTHON3 = {str(tmp_path / 'snapshot')!r}, {str(python3)!r}\n"
    done = run(begin + JOB + THEN, tmp_path)
    assert done.stdout.splitlines() == ["[['ben'], ['ana']]", "1", "1"], done.stderr[-3000:]
    assert done.returncode == 1
    assert "has no module 'tidings': set PYSPARK_PYTHON to a Python with tidings" in done.stderr
