"""What a node learns in a channel with relations, and the neighbours to which it therefore sends
bodies early.

    learning.py    learns from forwarded notifications; finds the neighbours to serve early
    hops.py        numbers of neighbours

What a node has learnt does not affect which notifications arrive: a body that is sent early is
never delivered by itself (routing/early). This folder loads `tidings.relations` and its kernels, so
nodes import it only when a channel has relations.

Used by broker. Start at learning.py.
"""

from tidings.routing.learning.learning import Learning, Serving

__all__ = ["Learning", "Serving"]
