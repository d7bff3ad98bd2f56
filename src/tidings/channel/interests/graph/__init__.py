"""The graph of a channel's nodes, as arrays.

    places    0 ... N-1 compiled, mapped | N ... added since
    edges     compiled; a place whose parents changed has a patch

    patched_edges.py   nodes by place, and their edges
    reach.py           a search: all nodes above given nodes, or all below them
    changed_nodes.py   the nodes that now have different nodes below them
    node_graph.py      adds and removes nodes; finds the lowest of the nodes that match

Used inside `channel`; broker uses `find_changed`. Start at node_graph.py.
"""

from tidings.channel.interests.graph.changed_nodes import find_changed
from tidings.channel.interests.graph.node_graph import NodeGraph
from tidings.channel.interests.graph.patched_edges import CompiledGraph
from tidings.channel.interests.graph.reach import Reach

__all__ = ["CompiledGraph", "NodeGraph", "Reach", "find_changed"]
