"""What tidings adds to Spark under names of its own: sources and sinks."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> None:
    """Make "tidings-feeds" and "tidings-rendezvous" known to a session, for `format`."""
    from tidings.spark.feeds.feeds import FeedSource
    from tidings.spark.handover.rendezvous_sink import RendezvousSink

    spark.dataSource.register(FeedSource)
    spark.dataSource.register(RendezvousSink)
