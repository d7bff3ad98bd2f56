"""The journal of a rendezvous point: what it must not forget, in a folder.

    journal.py      the journal itself: begin reading here
    things.py       what is written down, as records of a log of groups (store/groups)
    state.py        what it adds up to; checkpoints keep that
    checkpoint.py   the state in a file
    segments.py     files of the log: what is in them, and which can go
    mark_index.py   where notifications are, by their numbers
    before.py       journals of the format before, which were SQLite

Used by broker/root.py.
"""

from tidings.store.journal.journal import Batch, FileJournal
from tidings.store.journal.segments import Retention

__all__ = ["Batch", "FileJournal", "Retention"]
