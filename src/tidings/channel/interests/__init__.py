"""The interests of a channel: filters as nodes of a graph, by the million.

    text ──parse──> filter ──neighbours──> node below its coverers, above the nodes it covers
    notification ──match──> nodes ──graph──> the lowest of them

    compiled, mapped from a folder:  numbers, identities, edges, texts, matcher, index of boxes
    recent, as objects:              nodes placed since; later, a process compiles all nodes

    interests.py            what a rendezvous point calls: place, tag, remove, set aside; limits
    reading.py              filters from texts
    own_texts.py            topics, types and an application: a node for each text
    node_loading.py         the nodes at a start
    preparing.py            filters read and looked up before they are placed
    tagging.py              the lowest nodes that match one or many notifications
    nodes.py                compiled and recent nodes together
    covering_neighbours.py  the nodes that cover a new filter, and those that it covers
    index_kinds.py          plain, wide and computing filters
    computing.py            filters that compute; their cost is charged to their owners
    recent.py               filters that are not compiled yet
    compiled.py             the folder of compiled nodes
    compilation.py          a compilation: the plan, the process, the result
    compile_nodes.py        the work of that process
    graph/            nodes and edges as arrays

Used by broker. Start at interests.py, then nodes.py.
"""

from tidings.channel.interests.compilation import Compilation
from tidings.channel.interests.graph import find_changed
from tidings.channel.interests.interests import ArrayInterests, load_interest_kernels
from tidings.channel.interests.node_loading import MOST_TOLD, SetAsideFilter
from tidings.preprocessing import ExtraFields

__all__ = [
    "MOST_TOLD",
    "ArrayInterests",
    "Compilation",
    "ExtraFields",
    "SetAsideFilter",
    "find_changed",
    "load_interest_kernels",
]
