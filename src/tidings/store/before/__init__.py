"""Older formats of a channel's folder, which are converted when it is first opened.

    a folder, opened for the first time ──conversion──> which format?
        old_log, text_log ──subscriptions──> entries of the log as it is now

    conversion.py   decides what to convert, and does it
    formats.py      says which format it is, for `tidings channel import`
    old_log.py      logs of subscriptions in the previous format
    text_log.py     logs of subscriptions in the oldest format

journal/sqlite_journal.py converts journals that were SQLite files. Only log_opening.py uses this
folder, and cli its formats.py. Start at conversion.py.
"""

from tidings.store.before.conversion import KeyOf, convert, is_before
from tidings.store.before.formats import find_format, list_copies

__all__ = ["KeyOf", "convert", "find_format", "is_before", "list_copies"]
