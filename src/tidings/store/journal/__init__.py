"""The log of a channel: nodes and their history, named subscriptions, notifications, publishers,
sources, counters and lives; and the journal: this log, written by a rendezvous point.

    add_node, append ... ──> waiting, in memory
    take ──> batch ──write, in a thread──> one group, one sync ──> the whole batch is on the disk

    journal.py      the journal itself
    entries.py      the entries of the log, as records of a log of groups (store/groups)
    rows.py         the entries of named subscriptions
    losses.py       which versions can't be read after a loss
    block_records.py, block_kernels.py    the records of a batch of entries; those of many
                    notifications are created at once
    state.py        the state that results from the entries, which checkpoints store
    checkpoint.py   the state in a file
    upkeep/         when a checkpoint is written, from what, and which segments are dropped
    log_segments.py  the files of the log: their content, and which can be dropped
    record_lookup.py, mark_index.py    find notifications by their numbers at nodes
    sqlite_journal.py  journals in the previous format, which was SQLite

broker/root_node.py uses the journal, and change_log.py the other modules; they are not for
users. Start at journal.py.
"""

from tidings.store.journal.block_records import encode_block
from tidings.store.journal.journal import Batch, FileJournal
from tidings.store.journal.log_segments import Retention
from tidings.store.journal.rows import Row
from tidings.store.journal.upkeep import CounterSums

__all__ = ["Batch", "CounterSums", "FileJournal", "Retention", "Row", "encode_block"]
