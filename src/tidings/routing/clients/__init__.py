"""Both ends of the network as state machines: subscribers and publishers.

    subscriber   ASKING ──Answer──> JOINING ──Setup──> ON       a gap in the numbers of a node, or
                                                               a beat, shows what is missing
    publisher    repeats each notification, in order, until it is acknowledged

    subscriber.py     one interest: delivers every matching notification once, or reports its loss
    tracker.py        which numbers of each node have come, and which are missing
    publisher.py      stamps, and what to do when the rendezvous point has lost some
    acknowledged_runs.py   the stamps that were acknowledged to a publisher

The agent (network/agent.py) runs them. For network and cli. Users see only what subscriptions
yield; docs/network.md describes it. Start at subscriber.py.
"""

from tidings.routing.clients.publisher import Publisher
from tidings.routing.clients.subscriber import Delivery, Lost, Phase, Subscriber, Told

__all__ = [
    "Delivery",
    "Lost",
    "Phase",
    "Publisher",
    "Subscriber",
    "Told",
]
