""""""

from tidings.studies.spark.spark_bench import bench_spark
from tidings.studies.spark.stream_bench import bench_stream

__all__ = [
    "bench_spark",
    "bench_stream",
]
