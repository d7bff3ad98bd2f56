"""What a node learns in a channel with relations, and to which neighbours it sends bodies early as
a result.

    frame that was forwarded ──note──> pending ──work──> terms, hop, nodes ──> ClusterStore
    subscriptions that ended, time that passed ──store_upkeep──> nodes leave the ClusterStore
    context of an early body ──find_served──> merits of hops ──hops──> neighbours over the limit

    learning.py       learns from forwarded notifications; finds the neighbours to serve early
    hops.py           numbers of neighbours
    store_upkeep.py   removes from a store what has ended or is old

What a node has learnt does not affect which notifications arrive: a body that is sent early is
never delivered by itself (routing/early). This folder loads `tidings.relations` and its kernels, so
nodes import it only when a channel has relations.

Used by broker, and by channel, whose store of merits needs the same upkeep. Start at learning.py.
"""

from tidings.routing.learning.learning import EarlySettings, Learning
from tidings.routing.learning.store_upkeep import Upkeep

__all__ = ["EarlySettings", "Learning", "Upkeep"]
