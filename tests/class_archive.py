"""An archive of the Java classes that Spark loads, which halves the cost of starting a session.

To start a session and run its first queries, Java reads, checks and links some 20,000 classes from
jars. From an archive of class data (CDS) it maps them. `make test` starts dozens of sessions.

    tests/conftest.py ──make──> this module as a process ──> session, queries ──exit──> build/*.jsa
    each later session ──> SPARK_SUBMIT_OPTS ──> -XX:SharedArchiveFile=build/*.jsa

Java compares the archive with itself and with the jars, and ignores it where they differ.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

HOME = Path(__file__).parents[1]
# Java that runs for a minute does not earn back what its second compiler costs.
PLAIN = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
PATIENCE = 240  # seconds to make the archive, which takes half a minute
# Java would warn of each class that it can't archive, and of an archive that does not fit.
SILENT = "-Xlog:disable -Xlog:all=error:stderr"


def java_options() -> str:
    """The options of Java for the sessions of tests; with the archive, if there is one."""
    path = _path()
    if path is None or not path.exists():
        return PLAIN
    return f"{PLAIN} {SILENT} -XX:SharedArchiveFile={path}"


@contextlib.contextmanager
def make_archive() -> Iterator[None]:
    """Make the archive where it is missing, in a process beside what the caller does meanwhile.
    Without Java, or when it fails, sessions start without an archive."""
    path = _path()
    if path is None or path.exists():
        yield
        return
    path.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        made = Path(folder, "classes")
        options = f"{PLAIN} {SILENT} -XX:ArchiveClassesAtExit={made}"
        with subprocess.Popen(
            [sys.executable, "-m", "tests.class_archive", folder], cwd=HOME,
            env=os.environ | {"SPARK_SUBMIT_OPTS": options},
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        ) as process:  # fmt: skip
            yield
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(PATIENCE)
            process.kill()  # nothing, if it has ended
        if process.returncode == 0 and made.exists():
            made.replace(path)


def _path() -> Path | None:
    """Where the archive is, or would be: another one for another Java or Spark."""
    java = shutil.which(Path(os.environ.get("JAVA_HOME", "none"), "bin", "java"))
    java = java or shutil.which("java")
    try:
        spark = metadata.distribution("pyspark")
    except metadata.PackageNotFoundError:
        return None
    if java is None or " " in str(HOME):  # options are separated by spaces
        return None
    real, jars = Path(java).resolve(), Path(str(spark.locate_file("pyspark/jars")))
    known = [(str(one), one.stat().st_mtime_ns) for one in (real, jars) if one.exists()]
    digest = hashlib.sha256(repr(known).encode()).hexdigest()[:16]
    return HOME / "build" / f"classes-{digest}.jsa"


def load_classes(folder: Path) -> None:
    """Do with Spark what most tests do with it, so that Java loads what they need. The kernels of
    tidings are not among it: they are compiled at the same time."""
    from pyspark import SparkContext
    from tests.filters.oracle import GENERATED, INTERPRETED

    from tidings.spark import local_session

    spark = local_session("classes", 2)
    for settings in (GENERATED, INTERPRETED):
        for key, value in settings.items():
            spark.conf.set(key, value)
        _query(spark, folder / settings["spark.sql.codegen.wholeStage"])
    spark.stop()
    # Java writes the archive when it ends, and it ends with its standard input.
    gateway: Any = SparkContext._gateway
    gateway.proc.stdin.close()
    sys.exit(gateway.proc.wait())


def _query(spark: Any, folder: Path) -> None:
    rows = spark.createDataFrame([(1, "a"), (2, None)], "n int, s string")
    table = rows.selectExpr(
        "n", "s", "n / 2 > 0 AND s LIKE 'a%' AS t", "CAST(n AS decimal(9, 2)) AS d",
        "timestamp_seconds(n) AS at", "named_struct('x', n) AS f", "array(n) AS l",
    ).where("s IS NOT NULL")  # fmt: skip
    table.write.partitionBy("n").parquet(str(folder / "parquet"))
    table.write.json(str(folder / "json"))
    read = spark.read.parquet(str(folder / "parquet"))
    read.groupBy("s").count().join(rows, "s").orderBy("s").toArrow()
    read.mapInArrow(lambda batches: batches, read.schema).collect()
    stream = spark.readStream.schema("n int, s string").json(str(folder / "json"))
    (
        stream.writeStream.foreachBatch(lambda batch, _: batch.toArrow() and None)
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True).start().awaitTermination()
    )  # fmt: skip


if __name__ == "__main__":
    load_classes(Path(sys.argv[1]))
