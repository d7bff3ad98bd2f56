"""The outbox: what subscribers are to be told, on disk, each batch once.

    rows ──stages──> staged files, counts of nodes ──numbering──> first numbers ──filing──> Parquet
                                                                                       |
       nothing of a batch is seen before its commit  <──commits: one group, one sync──┘

    outbox.py            folders, pins, commits, counters, and the invariants between them
    stages.py            first half of a batch: decode and match, in the workers
    filing.py            second half: numbers, files by time
    numbering.py         every node counts 1, 2, 3 ... without gap or repeat
    commits.py           the log of commits (store/groups)
    spark_checkpoint.py  what Spark noted of its place, synced before anything is written
    outbox_start.py, outbox_check.py    taking an outbox over, verifying one
    outbox_upgrade.py    outboxes of the old format
    sealed_files.py      files with a digest in them

Users read with `Outbox` (docs/pipelines.md); the rest is for this room, cli and studies. Start at
outbox.py.
"""

from tidings.spark.outbox.outbox import Commit, Outbox
from tidings.spark.outbox.outbox_check import OutboxCheck

__all__ = [
    "Commit",
    "Outbox",
    "OutboxCheck",
]
