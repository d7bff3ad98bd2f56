""""""

from tidings.spark.outbox.outbox import Commit, Outbox
from tidings.spark.outbox.outbox_check import OutboxCheck

__all__ = [
    "Commit",
    "Outbox",
    "OutboxCheck",
]
