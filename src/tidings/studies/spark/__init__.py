"""Spark measured: `tidings bench spark` and `tidings bench stream`.

    spark_bench.py    Parquet to tagged Parquet: bare engine, files, tables; against Spark's joins
    stream_bench.py   a running pipeline: seconds from a file to the outbox, growth of memory

All ways of a run must give the same pairs of row and filter; one that does not is not reported. For
cli. Start at spark_bench.py.
"""

from tidings.studies.spark.spark_bench import bench_spark
from tidings.studies.spark.stream_bench import bench_stream

__all__ = [
    "bench_spark",
    "bench_stream",
]
