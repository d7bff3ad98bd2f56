"""Registers the data sources and sinks that tidings adds to Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> None:
    """Make the formats "tidings-feeds" and "tidings-rendezvous" available in a session."""
    from tidings.spark.feeds.feeds import FeedSource
    from tidings.spark.handover.rendezvous_sink import RendezvousSink

    spark.dataSource.register(FeedSource)
    spark.dataSource.register(RendezvousSink)
