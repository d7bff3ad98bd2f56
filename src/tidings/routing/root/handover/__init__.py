"""Notifications that were tagged elsewhere. Such notifications arrive in parts of batches, and each
part is stored once.

    HandOver ──columns──> pieces ──sources──> expected? ──resolving──> current nodes
                                                 │                        │ number, many at once
                                                 └ taken before           └──> Block ──> journal
    Describe, Follow ──following──> the channel's definition, and its nodes by version

    takeover.py          takes, acknowledges or refuses parts
    part_columns.py      the columns of a part, checked, and its pieces
    row_pieces.py        the stamps of pieces of long rows
    source_progress.py   how far each source has handed over
    correcting.py        replaces the tag of a publication with the tag that it would get now
    resolving.py         replaces the nodes of a tag with the lowest current nodes
    node_table.py        a cache of what is known about nodes, in arrays
    handover_kernels.py  the loops over all nodes of a piece, compiled
    follower_answers.py  answers for clients that tag elsewhere

A pipeline on Spark (room `channel`) hands the parts over. The rendezvous point uses this folder,
and broker uses it for its queues. Start at takeover.py.
"""

from tidings.routing.root.handover.correcting import Corrected, Correcting, TagColumns
from tidings.routing.root.handover.follower_answers import Definition, FollowerState, Following
from tidings.routing.root.handover.node_table import number_alone
from tidings.routing.root.handover.part_columns import Piece
from tidings.routing.root.handover.takeover import TakeOver

__all__ = [
    "Corrected",
    "Correcting",
    "Definition",
    "FollowerState",
    "Following",
    "Piece",
    "TagColumns",
    "TakeOver",
    "number_alone",
]
