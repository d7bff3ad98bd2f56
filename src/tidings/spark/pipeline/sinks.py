"""Hands committed batches over to sinks.

After a crash between the commit and the end of the hand-over, a batch is handed over twice. In
Kafka, the key consists of the stream and the number of the notification, so that readers can drop
repeats. A channel gets its batches from the outbox, not as a table; see channel/handing_over.py.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, TextIO, assert_never

from tidings.spark.pipeline.settings import ConsoleSink, KafkaSink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def hand_over_to(
    sink: ConsoleSink | KafkaSink, rows: DataFrame, stream: str, console: TextIO | None = None
) -> None:
    """Send the rows of a batch to a sink. A console sink writes to `console`, by default stdout."""
    if isinstance(sink, ConsoleSink):
        table: Any = rows.orderBy("notification")
        out = sys.stdout if console is None else console
        # `_show_string` returns the text that `show` would write to stdout
        out.write(table._show_string(sink.rows, 60, False) + "\n")
        out.flush()
    elif isinstance(sink, KafkaSink):
        from pyspark.sql import functions as f

        key = f.concat(f.lit(f"{stream}/"), f.col("notification").cast("string"))
        pairs = rows.select(key.alias("key"), f.to_json(f.struct("*")).alias("value"))
        pairs.write.format("kafka").option("kafka.bootstrap.servers", sink.servers).option(
            "topic", sink.topic
        ).options(**sink.options).save()
    else:
        assert_never(sink)
