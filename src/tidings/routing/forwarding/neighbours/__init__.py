"""What a router or a rendezvous point does for its neighbours below, one part in each module.

    message ──downstream.py──> subscriptions   which neighbour wants which node
                               rights          which nodes limited neighbours may see
                               open_questions  questions that were passed on and are not answered
                               recovery        notifications that a neighbour missed
                               return_paths    where acknowledgments go
                               beats, sums     regular messages by which neighbours notice a loss
                               node_charges    who pays for answers, by owner: accounts, owners

    context.py      what the parts share: settings, time, life, and the messages to send

Only routers and the rendezvous point use this folder. Start at context.py, then subscriptions.py.
"""

from tidings.routing.forwarding.neighbours.accounts import Payer
from tidings.routing.forwarding.neighbours.beats import Beats
from tidings.routing.forwarding.neighbours.context import Context, Name, Neighbour, Sent, Signed
from tidings.routing.forwarding.neighbours.node_charges import Charges
from tidings.routing.forwarding.neighbours.open_questions import Questions
from tidings.routing.forwarding.neighbours.owners import (
    UNKNOWN,
    ask_for_owners,
    is_owner_behind,
    name_owner,
    name_owner_behind,
)
from tidings.routing.forwarding.neighbours.recovery import Recovery, bound_ranges, count_entries
from tidings.routing.forwarding.neighbours.return_paths import ReturnPaths
from tidings.routing.forwarding.neighbours.rights import SIGNED, Rights
from tidings.routing.forwarding.neighbours.subscriptions import Subscriptions
from tidings.routing.forwarding.neighbours.sums import Sums

__all__ = [
    "SIGNED",
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
    "Rights",
    "Sent",
    "Signed",
    "Subscriptions",
    "Sums",
    "ask_for_owners",
    "bound_ranges",
    "count_entries",
    "is_owner_behind",
    "name_owner",
    "name_owner_behind",
]
