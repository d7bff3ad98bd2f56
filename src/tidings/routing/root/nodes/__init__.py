"""The nodes of the content graph at a rendezvous point, from creation to removal.

    Ask ──checks──> within limits? ──placing──> new ──> wanted ──> unwanted ──> retired ──> gone
                                                       lifecycle

    filter_checks.py   decides whether a filter is accepted at all
    territory.py       what a subscriber with limited rights may have
    placing.py         finds or creates the node of a filter, and answers
    holding.py         finds or creates the nodes of subscriptions that commands make
    lifecycle.py       the states of a node, and how long it stays in them
    type_nodes.py      adds nodes for the types of notifications, and keeps them
    set_aside.py       sets filters aside when their owner exceeds its share of a notification
    ancestors.py       all nodes that a notification matches, given the lowest ones
    node_registry.py   the current nodes by version, for followers
    shared_objects.py  the objects that these modules share

Only the rendezvous point uses this folder. Start at placing.py.
"""

from tidings.routing.root.nodes.ancestors import Ancestors
from tidings.routing.root.nodes.filter_checks import FilterChecks
from tidings.routing.root.nodes.holding import Holding
from tidings.routing.root.nodes.lifecycle import NodeLifecycle
from tidings.routing.root.nodes.node_registry import Registry
from tidings.routing.root.nodes.placing import Placing
from tidings.routing.root.nodes.set_aside import SetAside
from tidings.routing.root.nodes.shared_objects import Parts
from tidings.routing.root.nodes.territory import Territory
from tidings.routing.root.nodes.type_nodes import AT_ONCE, TypeNodes

__all__ = [
    "AT_ONCE",
    "Ancestors",
    "FilterChecks",
    "Holding",
    "NodeLifecycle",
    "Parts",
    "Placing",
    "Registry",
    "SetAside",
    "Territory",
    "TypeNodes",
]
