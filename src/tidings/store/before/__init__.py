"""Older formats of a channel's folder, which are converted when it is first opened.

    a folder, opened for the first time ──conversion──> which format?
        old_log, text_log ──subscriptions──> entries of the log as it is now

    conversion.py   decides what to convert, and does it
    old_log.py      logs of subscriptions in the previous format
    text_log.py     logs of subscriptions in the oldest format

journal/sqlite_journal.py converts journals that were SQLite files. Only log_opening.py uses this
folder. Start at conversion.py.
"""

from tidings.store.before.conversion import KeyOf, convert, is_before

__all__ = ["KeyOf", "convert", "is_before"]
