"""One running node: a router or a rendezvous point with its links, its clock and its disk."""

from tidings.broker.admission.listen import Address, Door
from tidings.broker.interests import GraphInterests
from tidings.broker.node import Node
from tidings.broker.root import RootNode
from tidings.broker.router import RouterNode

__all__ = ["Address", "Door", "GraphInterests", "Node", "RootNode", "RouterNode"]
