"""Both ends of the network as state machines: subscribers and publishers.

    subscriber   ASKING ──Answer──> JOINING ──Setup──> ON       a gap in the numbers of a node, or
                                                               a beat, shows what is missing
    publisher    says each notification, in order, until it is acknowledged

    subscriber.py     one interest: every notification that matches, once, or word of its loss
    tracker.py        which numbers of which nodes have come, and which must have been
    publisher.py      stamps, and what to do when the rendezvous point has lost some
    acknowledged_runs.py   what a publisher was told to be on the disk

The agent (network/agent.py) runs them. For network and cli; users see what subscriptions yield,
which docs/network.md describes. Start at subscriber.py.
"""

from tidings.routing.clients.publisher import Publisher
from tidings.routing.clients.subscriber import Lost, Phase, Subscriber, Told

__all__ = [
    "Lost",
    "Phase",
    "Publisher",
    "Subscriber",
    "Told",
]
