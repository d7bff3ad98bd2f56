"""Asks a preprocessor for the places of new nodes in the graph of a router.

    wanted ──Locate──> preprocessor ──Located──> Subscribe, placed ──Setup──> in the graph
                            └── no answer, or none that can be used:
                                                 Subscribe ──Setup with the place──> in the graph

For each node, a preprocessor answers with all nodes of the channel, at some version, that cover the
node, and all that the node covers. Within one life, whether one node covers another never changes,
and node numbers rise with versions. So the answer is complete if its version is at least as high as
all numbers in the graph of the router, however far the preprocessor is ahead of the router. An
answer of an older version lacks newer nodes: the router puts the node into its graph, and asks the
node above for the other edges.

The router subscribes at the node above only when it has the place. From then on, notifications of
the new node arrive with this node as their label, and the router must know the nodes that cover it.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from tidings.routing.protocol import messages as m

LOCATOR = "<preprocessor>"
"""The receiver of questions for places; no neighbour can have such a name."""


class KnownPlace(msgspec.Struct, frozen=True):
    """The place of a node among all nodes of the channel at a version."""

    version: int
    above: m.Label
    below: m.Label


class Locating:
    """The nodes whose places one router has asked a preprocessor for."""

    def __init__(self) -> None:
        self.is_on = False
        """Is there a preprocessor to ask?"""
        self._asked: dict[int, KnownPlace | None] = {}  # by node; None: its place is not known
        self.located = 0
        """How many places preprocessors gave."""
        self.lacked = 0
        """How many places were needed while there was no preprocessor to ask."""

    def begin(self, node: int) -> bool:
        """Should a preprocessor be asked for the place of a node? A preprocessor is asked only once
        for each node."""
        self.lacked += not self.is_on
        if not self.is_on or node in self._asked:
            return False
        self._asked[node] = None
        return True

    def take(self, asked: m.Locate, answer: m.Located | None) -> Iterator[tuple[int, bool]]:
        """Record an answer, or that none came. Return the nodes that waited for the answer, and for
        each of them whether its place is now known."""
        given: dict[int, m.NodePlace] = {}
        if answer is not None and answer.epoch == asked.epoch:
            given = {one.node: one for one in answer.places if one.node <= answer.version}
        for node in asked.nodes:
            if node not in self._asked or self._asked[node] is not None:
                continue
            found = given.get(node)
            if answer is not None and found is not None:
                self._asked[node] = KnownPlace(answer.version, found.above, found.below)
                self.located += 1
            yield node, found is not None

    def use(self, node: int) -> KnownPlace | None:
        """Return the place of a node, and forget the place."""
        return self._asked.pop(node, None)

    def clear(self) -> None:
        """Forget all questions, because they belong to a life that is over."""
        self._asked.clear()
