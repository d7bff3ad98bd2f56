"""The interests of a channel: filters as nodes of a graph, by the million.

    text ──parse──> filter ──neighbours──> node between those that cover it and those it covers
    notification ──match──> nodes ──graph──> the lowest of them

    compiled, mapped from a folder:  numbers, identities, edges, texts, matcher, index of boxes
    recent, as objects:              what was placed since; after a while a process compiles both

    interests.py            what a rendezvous point asks: place, tag, remove, set aside; limits
    reading.py              filters from texts
    node_loading.py         the nodes at a start
    tagging.py              the lowest nodes of a notification, or of each of many
    nodes.py                compiled and recent nodes together
    covering_neighbours.py  what covers a new filter, and what it covers
    index_kinds.py          plain, wide and computing filters
    computing.py            filters that compute; their cost is charged to their owners
    recent.py               filters that are not compiled yet
    compiled.py             the folder of compiled nodes
    compilation.py          a compilation: the plan, the process, the result
    compile_nodes.py        what that process does
    graph/            nodes and edges as arrays

Used by broker. Start at interests.py, then nodes.py.
"""

from tidings.channel.interests.compilation import Compilation
from tidings.channel.interests.graph import find_changed
from tidings.channel.interests.interests import ArrayInterests, load_interest_kernels
from tidings.channel.interests.node_loading import MOST_TOLD, Aside
from tidings.preprocessing import ExtraFields

__all__ = [
    "MOST_TOLD",
    "ArrayInterests",
    "Aside",
    "Compilation",
    "ExtraFields",
    "find_changed",
    "load_interest_kernels",
]
