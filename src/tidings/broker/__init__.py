"""One running node, a router or a rendezvous point: a state machine with its links, clock and disk.

    frames ─> links ─> messages ─> queues ─> machine (routing) ─> messages ─> links ─> frames
                  `──> notifications from above, by their fronts alone ────────┘

    server.py         what routers and rendezvous points have in common; which message waits where
    router.py         a router that runs, and keeps a link to the one above it
    root.py           a rendezvous point that runs: what it promises is on the disk first
    interests.py      the preprocessor of a rendezvous point: content graph and matcher
    computing.py      filters that compute; what they cost is charged to their owners
    connections.py    connections, until they are neighbours
    admission/        who may connect          queues/    whose turn it is
    config.py         a router's file          tree_file.py, tree.py    a whole tree, as processes
    reports.py        the status of a node and of those below it
    garbage.py        full garbage collections, seldom

Users who run nodes inside their own program get `RootNode`, `RouterNode`, `Door` and `Address` here
(docs/network.md); the rest is for cli. Start at server.py, then root.py.
"""

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
