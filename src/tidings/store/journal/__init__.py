"""The journal of a rendezvous point: nodes and their history, notifications, publishers, sources,
counters and lives.

    add_node, append ... ──> waiting, in memory
    take ──> batch ──write, in a thread──> one group, one sync ──> the whole batch is on the disk

    journal.py      the journal itself
    things.py       the entries of a journal, as records of a log of groups (store/groups)
    block_records.py, block_kernels.py    create the records of many notifications at once
    state.py        the state that results from the entries, which checkpoints store
    checkpoint.py   the state in a file
    segments.py     the files of the log: their content, and which can be dropped
    mark_index.py   finds notifications by their numbers at nodes
    before.py       journals in the previous format, which was SQLite

broker/root.py uses the journal; it is not for users. Start at journal.py.
"""

from tidings.store.journal.block_records import encode_block
from tidings.store.journal.journal import Batch, FileJournal
from tidings.store.journal.segments import Retention

__all__ = ["Batch", "FileJournal", "Retention", "encode_block"]
