"""Bodies of notifications that are sent early: before the notifications are matched, and before
they are on the disk.

    root      Early ───────────────> router ── Early ──> router, agent      for their merit
                (matched, numbered, synced)
              reference ───────────> the whole frame again ──> ...          as always

    early_frames.py    early frames, and references to them
    early_bodies.py    the bodies that both ends of a link keep in the same way
    shared_bodies.py   the bodies of all links of a node, within one bound

A link restores the whole frame before it passes the frame on, so no other code knows about
references. The folder routing/learning decides which neighbours get a body early.

Used by network and broker. Start at early_bodies.py.
"""

from tidings.routing.early.early_bodies import (
    LARGEST_BODY,
    LEAST_BODY,
    MOST_BODIES,
    MOST_BYTES,
    KeptBodies,
    SentBodies,
)
from tidings.routing.early.early_frames import Early, decode_early, encode_early
from tidings.routing.early.shared_bodies import SharedBodies, SharedBody

__all__ = [
    "LARGEST_BODY",
    "LEAST_BODY",
    "MOST_BODIES",
    "MOST_BYTES",
    "Early",
    "KeptBodies",
    "SentBodies",
    "SharedBodies",
    "SharedBody",
    "decode_early",
    "encode_early",
]
