"""Which notifications a subscriber has, and which it lacks, by their numbers at nodes.

    (node, number) of each notification ──tracker──> new, repeated, or missing: 17 to 19 of node 4

    stages.py    a tracker for each meaning of the interest, before and after each revision
    tracker.py   which numbers of each node have arrived, and which are missing

Used inside `clients`. Start at tracker.py.
"""

from tidings.routing.clients.tracking.stages import Stages
from tidings.routing.clients.tracking.tracker import Tracker, cut_ranges

__all__ = ["Stages", "Tracker", "cut_ranges"]
