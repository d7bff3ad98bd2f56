"""Notifications that were tagged elsewhere: parts of batches, each of which is taken once.

    HandOver ──columns──> pieces ──sources──> expected? ──resolving──> nodes that there are now
                                                 │                        │ number, many at once
                                                 └ taken before           └──> Block ──> journal
    Describe, Follow ──following──> the channel's definition, and its nodes by version

    takeover.py          the state machine of parts: what is taken, acknowledged, refused
    columns.py           the columns of a part, checked, and its pieces
    sources.py           how far each source has handed over
    correcting.py        from the tag of a publication to the tag that it would get now
    resolving.py         from the nodes of a tag to the lowest ones that there are now
    node_table.py        what is known about each node of many notifications, in arrays
    handover_kernels.py  the loops over all nodes of a piece, compiled
    following.py         answers for those who tag elsewhere

A pipeline on Spark (room `channel`) is at the other end. Used inside `routing` by the rendezvous
point, and by broker for its queues. Start at takeover.py.
"""

from tidings.routing.root.handover.columns import Piece
from tidings.routing.root.handover.correcting import Corrected, Correcting, TagColumns
from tidings.routing.root.handover.following import Definition, Following
from tidings.routing.root.handover.node_table import number_alone
from tidings.routing.root.handover.takeover import TakeOver

__all__ = [
    "Corrected",
    "Correcting",
    "Definition",
    "Following",
    "Piece",
    "TagColumns",
    "TakeOver",
    "number_alone",
]
