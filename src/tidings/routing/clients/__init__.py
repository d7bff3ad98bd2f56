"""Both ends of the network as state machines: subscribers, publishers, and those who tag.

    subscriber   ASKING ──Answer──> JOINING ──Setup──> ON       a gap in the numbers of a node, or
                                                               a beat, shows what is missing
    publisher    repeats each notification, in order, until it is acknowledged
    pipeline     follows the nodes of the channel, and hands tagged notifications over in parts

    subscriber.py     one interest: delivers every matching notification once, or reports its loss
    items.py          what it yields
    confirming.py     what was confirmed of a named subscription
    ordering.py       holds notifications back until those before them have come
    pieces.py         puts payloads together that came in pieces
    tracker.py        which numbers of each node have come, and which are missing
    publisher.py      stamps, and what to do when the rendezvous point has lost some
    acknowledged_runs.py   the stamps that were acknowledged to a publisher
    follower.py       the definition of a channel, and the pages of its changes
    hander.py         the parts that are under way

The agent (network/agent.py) runs the first, and the link of a pipeline (channel/link.py) the last
two. For network, channel and cli. Users see only what subscriptions
yield; docs/network.md describes it. Start at subscriber.py.
"""

from tidings.routing.clients.confirming import Confirming
from tidings.routing.clients.follower import Follower
from tidings.routing.clients.hander import Hander
from tidings.routing.clients.items import Delivery, Interrupted, Item, Lost, Resumed, Told
from tidings.routing.clients.publisher import Publisher
from tidings.routing.clients.subscriber import Phase, Subscriber

__all__ = [
    "Confirming",
    "Delivery",
    "Follower",
    "Hander",
    "Interrupted",
    "Item",
    "Lost",
    "Phase",
    "Publisher",
    "Resumed",
    "Subscriber",
    "Told",
]
