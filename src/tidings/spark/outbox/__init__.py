"""The outbox: the matched notifications for subscribers, stored on disk, each batch exactly once.

    rows ──batches──> tagged rows in Parquet files ──> commit ──> numbers ──> readers
                                                       commits.py: a group and a sync for each

    outbox.py            folders, pins, commits, counters, and the invariants between them
    batches/             decodes, matches and files the rows of a batch, in the workers
    commits.py           the log of commits and numbers (store/groups)
    numbered_rows.py     joins the numbers with the rows
    spark_checkpoint.py  Spark's checkpoint, synced before any file of a batch is written
    outbox_start.py, outbox_check.py    prepares an outbox for writing; verifies one
    outbox_upgrade.py    rewrites outboxes of the old format
    outbox_reading.py, outbox_tables.py    the committed rows, for readers and for Spark
    sealed_files.py      files that contain their own digest

Users read an outbox with `tidings.spark.read_outbox` or `Outbox` (docs/pipelines.md); the rest is
for this room, cli and studies.
Start at outbox.py.
"""

from tidings.spark.outbox.batches.batch_stages import EXTRA
from tidings.spark.outbox.outbox import Commit, Outbox
from tidings.spark.outbox.outbox_check import OutboxCheck
from tidings.spark.outbox.outbox_reading import OutboxReader

__all__ = [
    "EXTRA",
    "Commit",
    "Outbox",
    "OutboxCheck",
    "OutboxReader",
]
