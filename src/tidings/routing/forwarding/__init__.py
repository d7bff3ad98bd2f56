"""Routers: they forward by header, keep labels up to date, and read no content.

        4  <- G             header [31] arrives:
        |                       F gets [31], a node that F subscribes to
       31  <- F                 G gets [4], the lowest node above 31 that G subscribes to

    label_graph.py     the graph of a router and the label of each node for each neighbour
    labelling.py       how the labels of a graph change
    cover_graph.py     the nodes and edges of a graph, without labels
    tables/            the arrays of a graph
    router.py          the state machine of a router, based on downstream.py
    moving_router.py   a router that can move to another node above, for agents
    downstream.py      the side of a router or root that faces its neighbours below
    neighbours/        what neighbours want, ask for, pay for and are sent
    locating.py        the places of new nodes, asked of a preprocessor
    transitions.py     the states of a node at a router, in one table
    ways.py            the form in which a notification is passed on: labels, lists, or unchanged
    cache.py           the latest notifications, for neighbours that missed some
    graph_caches.py    results computed from a graph, kept until what they depend on changes
    forwarders.py      three simpler ways to forward, for tests and measurements

This folder is for network, broker, store and studies, not for users. Start at label_graph.py, then
router.py.
"""

from tidings.routing.forwarding.cache import Cache, cost_of, look_up
from tidings.routing.forwarding.downstream import Downstream
from tidings.routing.forwarding.graph_caches import (
    GraphCaches,
    GraphChanges,
    HeaderCache,
    NodeCache,
)
from tidings.routing.forwarding.label_graph import Label
from tidings.routing.forwarding.locating import LOCATOR
from tidings.routing.forwarding.moving_router import MovingRouter
from tidings.routing.forwarding.neighbours import SIGNED, Name, Sent, Signed
from tidings.routing.forwarding.router import Router
from tidings.routing.forwarding.ways import MOST_LISTED, Forwarding, Mode, first_label, ways_of

__all__ = [
    "LOCATOR",
    "MOST_LISTED",
    "SIGNED",
    "Cache",
    "Downstream",
    "Forwarding",
    "GraphCaches",
    "GraphChanges",
    "HeaderCache",
    "Label",
    "Mode",
    "MovingRouter",
    "Name",
    "NodeCache",
    "Router",
    "Sent",
    "Signed",
    "cost_of",
    "first_label",
    "look_up",
    "ways_of",
]
