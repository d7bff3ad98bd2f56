"""The journal of a rendezvous point: nodes, notifications, publishers, counters and lives.

    add_node, append ... ──> waiting, in memory
    take ──> batch ──write, in a thread──> one group, one sync ──> all of it is on the disk

    journal.py      the journal itself
    things.py       what is written down, as records of a log of groups (store/groups)
    state.py        what it adds up to; checkpoints keep that
    checkpoint.py   the state in a file
    segments.py     files of the log: what is in them, and which can go
    mark_index.py   where notifications are, by their numbers
    before.py       journals of the format before, which were SQLite

Used by broker/root.py; not for users. Start at journal.py.
"""

from tidings.store.journal.journal import Batch, FileJournal
from tidings.store.journal.segments import Retention

__all__ = ["Batch", "FileJournal", "Retention"]
