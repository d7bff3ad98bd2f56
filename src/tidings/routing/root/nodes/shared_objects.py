"""The objects that the node-handling parts of a rendezvous point share."""

from __future__ import annotations

from typing import NamedTuple

from tidings.routing.forwarding.graph_caches import GraphCaches
from tidings.routing.forwarding.label_graph import LabelGraph
from tidings.routing.forwarding.neighbours import Charges, Context, Name, Rights, Subscriptions
from tidings.routing.root.counts import Counts
from tidings.routing.root.interests import Interests
from tidings.routing.root.nodes.node_registry import Registry
from tidings.routing.root.ownership import Claims
from tidings.routing.root.problems import Problems
from tidings.routing.root.relating import Relating
from tidings.routing.root.write_queue import WriteQueue


class Parts(NamedTuple):
    """The objects of one rendezvous point that its node-handling parts share."""

    context: Context
    charges: Charges
    rights: Rights
    interests: Interests
    graph: LabelGraph[Name]
    caches: GraphCaches
    claims: Claims
    counts: Counts
    queue: WriteQueue
    registry: Registry
    subscriptions: Subscriptions
    problems: Problems
    relating: Relating | None = None


class NodePart:
    """The base class of the parts that handle nodes."""

    def __init__(self, parts: Parts) -> None:
        self._context = parts.context
        self._charges = parts.charges
        self._rights = parts.rights
        self._interests = parts.interests
        self._graph = parts.graph
        self._caches = parts.caches
        self._claims = parts.claims
        self._counts = parts.counts
        self._queue = parts.queue
        self._registry = parts.registry
        self._subscriptions = parts.subscriptions
        self._problems = parts.problems
        self._relating = parts.relating
