"""What a node of a channel with relations learns, and which neighbours it serves early.

    learning.py    learns from forwarded notifications; finds the neighbours to serve early
    hops.py        numbers of neighbours

Notifications arrive whether a node has learnt anything or not: a body that is sent early is never
delivered by itself (routing/early). This folder loads `tidings.relations` and its kernels, so nodes
import it only when a channel has relations.

Used by broker. Start at learning.py.
"""

from tidings.routing.learning.learning import Learning, Serving

__all__ = ["Learning", "Serving"]
