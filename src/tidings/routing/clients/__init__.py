"""The clients of the network as state machines: subscribers, publishers, and pipelines that tag.

    subscriber   ASKING ──Answer──> JOINING ──Setup──> ON       a gap in the numbers of a node, or
                                                               a beat, shows what is missing
    publisher    repeats each notification, in order, until it is acknowledged
    pipeline     follows the nodes of the channel, and hands tagged notifications over in parts

    subscriber.py     one interest: delivers every matching notification once, or reports its loss
    joining.py        how it gets its node, and continues under its name
    node_stream.py    the notifications that have arrived, and those that are missing
    questions.py      the open questions, and when to ask them again
    delivering/       hands notifications to the application, once, whole and in order
    items.py              what a subscription yields
    confirming.py         what was confirmed of a named subscription
    unsettled.py          the publications that are not settled, and which of them to send next
    publisher.py          stamps, and what to do when the rendezvous point has lost notifications
    choosing.py           which router an agent should use, by load and round trip
    acknowledged_runs.py  the stamps that were acknowledged to a publisher
    tracking/         which numbers of each node have arrived, and which are missing
    tagging/          what a pipeline follows, and the parts that it hands over

The agent (network/agent.py) runs subscribers and publishers. The link of a pipeline
(channel/owner_link.py) runs a follower and a hander. This folder is for network, channel and cli.
Users see only the items that subscriptions yield; docs/network.md describes these items. Start at
subscriber.py.
"""

from tidings.routing.clients.choosing import Choosing, ChoosingTimes
from tidings.routing.clients.confirming import Confirming
from tidings.routing.clients.items import Delivery, Interrupted, Item, Lost, Resumed
from tidings.routing.clients.publisher import Publisher
from tidings.routing.clients.subscriber import Phase, Subscriber
from tidings.routing.clients.tagging import Follower, Hander

__all__ = [
    "Choosing",
    "ChoosingTimes",
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
]
