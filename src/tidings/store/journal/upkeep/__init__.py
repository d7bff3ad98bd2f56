"""Checkpoints of a journal that is being written, and the segments that it drops.

    entries, when written ──summary, counter_sums──> what came since the last checkpoint
        upkeep, when it is due: last checkpoint + summary ──> new checkpoint ──> segments dropped

    upkeep.py           when a checkpoint is due, and from what it is made
    summary.py          the entries since the last checkpoint, added up
    counter_sums.py     the counters of nodes in the summary
    counter_kernels.py  adds up the counters of blocks, in the table of counter_columns.py

Used only by journal.py. Start at upkeep.py.
"""

from tidings.store.journal.upkeep.counter_sums import CounterSums
from tidings.store.journal.upkeep.upkeep import Upkeep, walk_to

__all__ = ["CounterSums", "Upkeep", "walk_to"]
