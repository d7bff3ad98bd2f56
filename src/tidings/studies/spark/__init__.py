"""Benchmarks on Spark: `tidings bench spark` and `tidings bench stream`.

    spark_bench.py    Parquet to tagged Parquet: bare engine, files, tables; against Spark's joins
    stream_bench.py   a running pipeline: seconds from a file to the outbox, growth of memory

All methods in a run must find the same pairs of row and filter; otherwise there is no report. This
folder is for cli. Start at spark_bench.py.
"""

from tidings.studies.spark.spark_bench import bench_spark
from tidings.studies.spark.stream_bench import bench_stream

__all__ = [
    "bench_spark",
    "bench_stream",
]
