"""Nodes for the types of notifications, which exist although nobody has subscribed to them.

    accepted notification ──type──> no node yet, and room ──> node, owned by the channel ──> kept
    asked for by a subscriber ──> the subscriber's; no longer counted as kept
    nobody wants it for 40 s  ──> the channel's again if there is room; otherwise retired

No client is charged for such a node, and no filter of a subscriber gives way to it: if a
notification exceeds a limit, the nodes that are kept are set aside first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from tidings.model import TidingsError
from tidings.routing.protocol.limits import LONG
from tidings.routing.root.nodes.lifecycle import NodeLifecycle
from tidings.routing.root.nodes.set_aside import SetAside
from tidings.routing.root.nodes.shared_objects import NodePart, Parts
from tidings.routing.root.ownership import CHANNEL

AT_ONCE = 16  # the most nodes that are added in a turn; each takes about a millisecond

Owners = dict[int, tuple[str, ...]]


class TypeNodes(NodePart):
    """Adds and keeps nodes for types. `most` is the limit of nodes that are kept; 0 means none."""

    def __init__(self, parts: Parts, nodes: NodeLifecycle, set_aside: SetAside, most: int) -> None:
        super().__init__(parts)
        self._nodes = nodes
        self._set_aside = set_aside
        self._most = most
        # by type: a node with the meaning of the type, or None if the type can't have a node
        self._known: dict[str, int | None] = {}
        nodes.may_keep = self.keep

    def load(self, owned: Iterable[int], is_held: Callable[[int], bool]) -> None:
        """After a start, keep the nodes that the channel owns and no named subscription needs: the
        oldest ones if the limit is lower now. The others are retired if nobody subscribes."""
        for node in sorted(owned):
            is_needed = is_held(node) or self._nodes.related_above(node)
            if self.has_room and node in self._graph and not is_needed:
                self._nodes.kept.add(node)

    @property
    def has_room(self) -> bool:
        return len(self._nodes.kept) < self._most and not self._queue.failed

    def add(self, contents: Iterable[bytes], most: int = AT_ONCE) -> int:
        """Add nodes for the types of accepted notifications; return how many were added. If there
        are any, the caller tags the notifications again. At most `most` nodes are added, because
        other links wait meanwhile: further types get theirs with a later notification. Never
        raises."""
        added = 0
        with self._problems.survive("add nodes for types"):
            if self.has_room and most:
                for content in contents:
                    type_ = self._interests.type_of(content) if content else ""
                    if type_ and not self._has_node(type_):
                        added += self._add(type_)
                        if added >= most or not self.has_room:
                            break
        return added

    def _has_node(self, type_: str) -> bool:
        """Whether a type has a node, or can't have one."""
        if type_ not in self._known:
            return False
        node = self._known[type_]
        return node is None or node in self._graph

    def _add(self, type_: str) -> bool:
        if len(self._graph) >= self._context.limits.all_nodes:
            return False
        self._known[type_] = None
        interest, node = self._interests.find_type(type_)
        if node is not None:
            self._known[type_] = node
            return False
        if type_ in self._set_aside.without_node or len(interest) > LONG:
            return False
        try:
            placed = self._interests.place(interest)
        except TidingsError:  # not even a subscriber could get this node
            return False
        self._nodes.begin(placed, interest, CHANNEL)
        self._nodes.kept.add(placed.node)
        self._known[type_] = placed.node
        return True

    def keep(self, node: int) -> bool:
        """Keep a node that nobody wants any more, if it is the node of a type that had
        notifications, and there is room; return whether it is kept."""
        if not (self.has_room and self._counts.counts.get(node) and self._interests.type_at(node)):
            return False
        self._queue.set_owners(node, (CHANNEL,))
        self._claims.replace(node, ())
        self._nodes.settle(node)
        self._nodes.kept.add(node)
        return True


def split_owners(owners: Mapping[int, tuple[str, ...]]) -> tuple[Owners, list[int]]:
    """The owners of nodes without the channel itself, and the nodes that the channel owns."""
    of_channel = [node for node, one in owners.items() if CHANNEL in one]
    if not of_channel:
        return dict(owners), []
    return {node: one for node, one in owners.items() if CHANNEL not in one}, of_channel
