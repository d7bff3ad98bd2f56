"""Who owns each node, and how many nodes an owner may have.

    Ask by an owner ──claims──> owner of a node ──shares──> too many marks: its newest filters are
                                                            set aside

    claims.py        who asked for each node, and how much each owner has
    node_values.py   a number for each node, in arrays
    shares.py        which filters are set aside, so that no subscriber makes a notification too
                     large

Only the rendezvous point uses this folder. Start at claims.py.
"""

from tidings.routing.root.ownership.claims import CHANNEL, MOST_OWNERS, Claims
from tidings.routing.root.ownership.shares import ShareVerdict, describe, judge, lighten

__all__ = ["CHANNEL", "MOST_OWNERS", "Claims", "ShareVerdict", "describe", "judge", "lighten"]
