"""A running node (router, rendezvous point or preprocessor), with links, a clock and a disk.

    frames ─> links ─> messages ─> queues ─> machine (routing) ─> messages ─> links ─> frames
                  `──> notifications from above, by their fronts alone ────────┘

    server.py         the base of both kinds of node; decides which queue a message waits in
    router_node.py    a running router, which keeps links to the nodes above it
    root_node.py      a running rendezvous point, which writes to the disk before it acknowledges
    preprocessors/    a running preprocessor, which tags for agents and signs grants
    recompiling.py    compiles the filters of a rendezvous point again, in the background
    connections.py    connections: from stranger to neighbour
    attention.py      sees to neighbours: silent ones, and idle ones
    listening_server.py    the socket and the background tasks of a node
    admission/        who may connect          queues/    whose turn it is
    links/            links to nodes above, and the channels of a link
    early/            bodies that are sent early, in channels with relations
    outgoing_frames/   notifications that leave the rendezvous point, as frames
    config/           a router's file
    trees/            a whole tree, as processes
    predicates/       predicates that filters call, in helper processes
    processes/        signals to processes that a node or a tree starts
    reports.py        the status of a node and of the nodes below it
    root_reports.py   the pipelines and named subscriptions of a rendezvous point
    garbage.py        infrequent full garbage collections

Users who run nodes in their own programs import `RootNode`, `RouterNode`, `PreprocessorNode`,
`Door`, `Address`, `Direct`, `TokenRights` and `Signer` from here (docs/network.md,
docs/tagging.md). Only `cli` uses the other names. Start at server.py, then root_node.py.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from tidings.broker.admission.listen import Address, Direct, Door
from tidings.broker.admission.permissions import TokenRights
from tidings.broker.admission.signing import KeyProblem, Signer
from tidings.broker.config import Config, load_config, make_door, make_node, renew, revise
from tidings.broker.garbage import collect_seldom
from tidings.broker.preprocessors.preprocessor_node import PreprocessorNode
from tidings.broker.router_node import RouterNode
from tidings.broker.server import Server
from tidings.broker.trees import ProcessState, RunningTree, Tree, load_tree

if TYPE_CHECKING:
    from tidings.broker.root_node import RootNode

__all__ = [
    "Address",
    "Config",
    "Direct",
    "Door",
    "KeyProblem",
    "PreprocessorNode",
    "ProcessState",
    "RootNode",
    "RouterNode",
    "RunningTree",
    "Server",
    "Signer",
    "TokenRights",
    "Tree",
    "collect_seldom",
    "load_config",
    "load_tree",
    "make_door",
    "make_node",
    "renew",
    "revise",
]


def __getattr__(name: str) -> object:
    if name != "RootNode":  # RootNode loads the kernels, which routers do not need
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module("tidings.broker.root_node").RootNode
