"""Bulks: compiled snapshots whose subscriptions a channel has adopted as a whole.

    bulks/FIRST-NAME/     a snapshot, whose nodes have the numbers from FIRST on
        nodes.arrow, subscriptions.arrow, index/    as in any snapshot
        sorted.arrow      the identities in order, with the places of their nodes
        order.arrow       the order of the ids
        shared.arrow      places whose filters had nodes before, and the numbers of those

    bulk.py         the mapped files of a bulk, and what can be looked up in them
    bulk_writer.py  writes the folder of a bulk
    unnamed.py      removes the folders that nothing names any more

A bulk is one entry of the log, with one version, however many subscriptions it has. Its
subscriptions and nodes stay in its files; all others are in memory, in dictionaries: see
../layered.py. These modules are for journal/ and known_log.py, not for users. Start at bulk.py.
"""

from tidings.store.bulks.bulk import Bulk, LostBulk, high_halves, open_bulk
from tidings.store.bulks.bulk_writer import write_bulk
from tidings.store.bulks.unnamed import move_unnamed_aside, remove_unnamed

__all__ = [
    "Bulk",
    "LostBulk",
    "high_halves",
    "move_unnamed_aside",
    "open_bulk",
    "remove_unnamed",
    "write_bulk",
]
