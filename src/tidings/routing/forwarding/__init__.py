"""Routers: they forward by header, keep labels up to date, and read no content.

        4  <- G             header [31] comes in:
        |                       F gets [31], to which it subscribed
       31  <- F                 G gets [4], the lowest above 31 to which it subscribed

    label_graph.py     the graph of a router and the label of each node for each neighbour
    labelling.py       how its labels change
    cover_graph.py     its nodes and edges, without labels
    tables/            the arrays that it is made of
    router.py          the state machine, above downstream.py, the side that faces neighbours
    neighbours/        what neighbours want, ask for, pay for and are sent
    transitions.py     the states of a node at a router, in one table
    ways.py            the form in which a notification is passed on: labels, lists, or unchanged
    cache.py           the latest notifications, for neighbours that missed some
    graph_caches.py    results computed from a graph, kept until what they depend on changes
    forwarders.py      three simpler ways to forward, for tests and measurements

For network, broker, store and studies, not for users. Start at label_graph.py, then router.py.
"""

from tidings.routing.forwarding.cache import Cache, cost_of, look_up
from tidings.routing.forwarding.downstream import Downstream
from tidings.routing.forwarding.graph_caches import Changes, HeaderCache, NodeCache
from tidings.routing.forwarding.label_graph import Label
from tidings.routing.forwarding.neighbours import Name, Sent
from tidings.routing.forwarding.router import Router
from tidings.routing.forwarding.ways import MOST_LISTED, Forwarding, Mode, first_label, ways_of

__all__ = [
    "MOST_LISTED",
    "Cache",
    "Changes",
    "Downstream",
    "Forwarding",
    "HeaderCache",
    "Label",
    "Mode",
    "Name",
    "NodeCache",
    "Router",
    "Sent",
    "cost_of",
    "first_label",
    "look_up",
    "ways_of",
]
