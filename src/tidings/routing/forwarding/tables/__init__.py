"""The tables of a label graph, as arrays: a node takes about 60 bytes and needs no Python object.

    number 31 ──slots──> slot 7 ──edges, below──> slots of the nodes above and below it
                            `────labels─────────> its labels, which other slots may share

    slots.py         the slot of each node, its index in all arrays, by number
    slot_lists.py    a list of slots for each slot, all in one array
    edges.py         the edges between slots, in both directions, as lists of slots
    below.py         which nodes are below a given node
    labels.py        the labels of nodes, shared by all nodes that have the same ones

The arrays have the type `array.array`, because a router reads single values, which is slower with
numpy. Numpy is imported only to load many nodes at once. Only the label graph uses this folder.
Start at labels.py.
"""

from tidings.routing.forwarding.tables.below import FEW, Below
from tidings.routing.forwarding.tables.edges import Edges
from tidings.routing.forwarding.tables.labels import (
    KEEP,
    OWN,
    Groups,
    Label,
    LabelChanges,
    LabelPool,
    Labels,
    What,
    Who,
)
from tidings.routing.forwarding.tables.slots import BITS, LAST, Slots

__all__ = [
    "BITS",
    "FEW",
    "KEEP",
    "LAST",
    "OWN",
    "Below",
    "Edges",
    "Groups",
    "Label",
    "LabelChanges",
    "LabelPool",
    "Labels",
    "Slots",
    "What",
    "Who",
]
