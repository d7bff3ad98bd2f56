"""What test_kafka.py runs in a process of its own: jars must be there when a session starts.

    python kafka_job.py VERSION SERVERS FOLDER

Writes rows to a topic, streams them from there to another topic in two runs of one query, and
writes what arrived to FOLDER/result.json.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from tidings.spark import local_session
from tidings.spark.session.kafka import kafka_settings


def main(version: str, servers: str, folder: Path) -> None:
    spark = local_session("kafka", cores=2, **kafka_settings(version))
    put(spark, servers, range(5))
    copy(spark, servers, folder)
    put(spark, servers, range(5, 8))
    copy(spark, servers, folder)
    rows = table(spark, servers, "copies").selectExpr("CAST(value AS STRING) AS v").collect()
    (folder / "result.json").write_text(json.dumps(sorted(row.v for row in rows)))
    spark.stop()


def put(spark: SparkSession, servers: str, numbers: range) -> None:
    rows = spark.range(numbers.start, numbers.stop)
    writer = rows.selectExpr("CAST(id AS STRING) AS value").write.format("kafka")
    writer.option("kafka.bootstrap.servers", servers).option("topic", "numbers").save()


def copy(spark: SparkSession, servers: str, folder: Path) -> None:
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", servers)
    stream = reader.option("subscribe", "numbers").option("startingOffsets", "earliest").load()
    values = stream.selectExpr("concat('copy of ', CAST(value AS STRING)) AS value")
    writer = values.writeStream.format("kafka").option("kafka.bootstrap.servers", servers)
    writer = writer.option("topic", "copies").option(
        "checkpointLocation", str(folder / "checkpoint")
    )
    writer.trigger(availableNow=True).start().awaitTermination()


def table(spark: SparkSession, servers: str, topic: str) -> DataFrame:
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", servers)
    return reader.option("subscribe", topic).load()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
