"""Replaces nodes with new ones that have the same interests; the old numbers stand for the new
ones.

    before   4 mlb                              4 is gone, and equal to 17
    after    17 mlb                             tags with 4 mean 17; subscribers to 4 ask again

A rendezvous point does this when an interest has another meaning than before, and so lies above
nodes that it did not lie above (see interests/graph/gained.py).
"""

from __future__ import annotations

from collections.abc import Iterable

from tidings.routing.root import Gone, Placed
from tidings.store.journal import FileJournal


def renumber(journal: FileJournal, nodes: Iterable[int]) -> dict[int, int]:
    """Give nodes new numbers; return a mapping from old to new numbers. All of it is on the disk
    when this returns. The caller must have begun a life, and must not have changed anything
    since."""
    gone = sorted(nodes)
    interests = dict(journal.interests())
    memory = journal.memory([Placed(node, (), ()) for node in gone])
    number = max(journal.history.base, journal.history.version)
    found: dict[int, int] = {}
    for node in gone:
        found[node] = number + 1
        number += 2
        journal.add_node(found[node], interests[node])
        journal.set_owners(found[node], memory.owners.get(node, ()))
        count, latest = memory.counts.get(node, 0), memory.latest.get(node, 0)
        journal.drop_node(node, Gone(number, (found[node],), count=count, latest=latest))
    batch = journal.take()
    if batch is not None:
        journal.write(batch)
    return found
