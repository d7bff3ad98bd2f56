"""Registers the data sources that tidings adds to Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> None:
    """Make the format "tidings-feeds" available in a session."""
    from tidings.spark.feeds.feeds import FeedSource

    spark.dataSource.register(FeedSource)
