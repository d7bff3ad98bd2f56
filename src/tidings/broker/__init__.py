"""One running node: a router or a rendezvous point with its links, its clock and its disk."""

from tidings.broker.admission.listen import Address, Door
from tidings.broker.config import load_config, make_node, renew
from tidings.broker.garbage import collect_seldom
from tidings.broker.interests import GraphInterests
from tidings.broker.root import RootNode
from tidings.broker.router import RouterNode
from tidings.broker.server import Server
from tidings.broker.tree import RunningTree, State
from tidings.broker.tree_file import Tree, load_tree

__all__ = [
    "Address",
    "Door",
    "GraphInterests",
    "RootNode",
    "RouterNode",
    "RunningTree",
    "Server",
    "State",
    "Tree",
    "collect_seldom",
    "load_config",
    "load_tree",
    "make_node",
    "renew",
]
