"""The neighbours below a router or a rendezvous point: what they want, ask and pay for, and what
they are told."""

from tidings.routing.forwarding.neighbours.accounts import Payer
from tidings.routing.forwarding.neighbours.beats import Beats
from tidings.routing.forwarding.neighbours.charges import Charges
from tidings.routing.forwarding.neighbours.context import Context, Name, Neighbour, Sent
from tidings.routing.forwarding.neighbours.owners import (
    UNKNOWN,
    ask_for_owners,
    name_owner,
    name_owner_behind,
)
from tidings.routing.forwarding.neighbours.questions import Questions
from tidings.routing.forwarding.neighbours.recovery import Recovery, bound_ranges, count_entries
from tidings.routing.forwarding.neighbours.return_paths import ReturnPaths
from tidings.routing.forwarding.neighbours.subscriptions import Subscriptions
from tidings.routing.forwarding.neighbours.sums import Sums

__all__ = [
    "UNKNOWN",
    "Beats",
    "Charges",
    "Context",
    "Name",
    "Neighbour",
    "Payer",
    "Questions",
    "Recovery",
    "ReturnPaths",
    "Sent",
    "Subscriptions",
    "Sums",
    "ask_for_owners",
    "bound_ranges",
    "count_entries",
    "name_owner",
    "name_owner_behind",
]
