"""Finds or creates the nodes of named subscriptions that commands make, and keeps these nodes in
the graph.

    change ──> node, held ──> version ──> journal

Each change takes the next version, and a new node has the version of its change as its number, as
in a folder without a rendezvous point. These nodes are not charged to any owner, and do not count
towards any limit: any user who can write to the folder may make any number of them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tidings.routing.protocol.limits import work_of
from tidings.routing.root.cursors import Cursors
from tidings.routing.root.nodes.lifecycle import NodeLifecycle
from tidings.routing.root.nodes.set_aside import SetAside
from tidings.routing.root.nodes.shared_objects import NodePart, Parts


class HeldNode(NamedTuple):
    """The node of an interest, and the identity of the interest if the node is new. The node is 0
    if the change ends a subscription."""

    node: int
    key: bytes | None


class Holding(NodePart):
    """The nodes of named subscriptions that commands made."""

    def __init__(
        self, parts: Parts, nodes: NodeLifecycle, set_aside: SetAside, cursors: Cursors
    ) -> None:
        super().__init__(parts)
        self._nodes = nodes
        self._set_aside = set_aside
        self._cursors = cursors

    def place(
        self, interests: Sequence[bytes | None], may_go_on: Callable[[], bool] = lambda: True
    ) -> tuple[int, list[HeldNode]]:
        """Place interests, each in a change of its own; instead of an interest, None says that a
        subscription ends. Return the version of the first change, and the nodes. If `may_go_on`
        returns False after an interest, the remaining interests are left out, so fewer nodes than
        interests may be returned, but at least one. The caller must write the changes to the
        journal at once. Raises TidingsError if an interest is refused; then nothing has changed."""
        first, made, found = 0, list[int](), list[HeldNode]()
        try:
            for interest in interests:
                if interest is None:
                    version, held = self._interests.take_number(), HeldNode(0, None)
                else:
                    version, held = self._place(interest, made)
                first = first or version
                found.append(held)
                if not may_go_on():
                    break
        except BaseException:
            for node in reversed(made):
                with contextlib.suppress(Exception):
                    self._interests.remove(node)
                if node in self._graph:
                    self._graph.remove(node)
            self._caches.clear()
            raise
        for node in made:
            self._registry.add(node)
        self._registry.history.add(first + len(found) - 1)
        for one in found:
            if one.node:
                self._cursors.hold(one.node)
                self._nodes.want(one.node)
        return first, found

    def _place(self, interest: bytes, made: list[int]) -> tuple[int, HeldNode]:
        placed = self._interests.place(interest)
        node = placed.node
        if node in self._graph:
            self._set_aside.bring_back(node)
            return self._interests.take_number(), HeldNode(node, None)
        made.append(node)
        self._graph.insert(node, placed.parents, placed.children)
        self._caches.change(node)
        self._claims.measure(node, work_of(interest))
        return node, HeldNode(node, self._interests.identity(node))

    def let_go(self, node: int, is_wanted: Callable[[int], bool]) -> None:
        """Record that no named subscription made by a command needs this node any more."""
        self._cursors.let_go(node)
        if node in self._graph and not self._cursors.holds(node) and not is_wanted(node):
            self._nodes.stop_wanting(node)
