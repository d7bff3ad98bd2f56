"""The link of a pipeline to the rendezvous point, as state machines.

    follower <──pages of changes to nodes── rendezvous point
    parts ──part_sender: several in flight, in order──> rendezvous point

    follower.py      the definition of a channel, and the pages of its changes
    part_sender.py   the parts that are in flight

Used by the link of a pipeline (channel/owner_link.py), which imports it from routing.clients.
Start at part_sender.py.
"""

from tidings.routing.clients.tagging.follower import Follower
from tidings.routing.clients.tagging.part_sender import Hander

__all__ = ["Follower", "Hander"]
