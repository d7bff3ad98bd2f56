"""One running node: a router or a rendezvous point with its links, its clock and its disk."""

from tidings.broker.interests import GraphInterests
from tidings.broker.node import Node, RouterNode
from tidings.broker.root import RootNode

__all__ = ["GraphInterests", "Node", "RootNode", "RouterNode"]
