"""Implication edges between the diagrams of several filters, as Python objects: the reference.

An edge from node X of one filter to node Y of another means that, if X is reached, enough is known
to reach Y too. Y is the lowest such node, the *target* of X. An edge from X to Y is kept only if it
can save a step, that is, if Y comes after the test that led to X, Y is not a root, and the parent
of X has a different target.

Nodes with equal knowledge imply each other, and form a *class*; all nodes of a class share their
edges. An edge A -> C is left out if A -> B and B -> C exist.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator

from tidings.matching.diagrams.reference.decision_tree import Decision
from tidings.matching.diagrams.reference.known_sets import Known, decide

ClassKey = tuple[tuple[str, tuple[object, ...]], ...]
Edge = tuple[Decision, Decision]
Rule = Callable[[Decision, Decision], bool]


def find_target(known: Known, root: Decision) -> Decision:
    """The lowest node of a diagram that is certainly reached, given what is known."""
    node = root
    while node.test is not None:
        outcome = decide(known, node.test)
        if outcome is None:
            break
        node = node.branch(outcome)
    return node


def is_after_test(node: Decision, target: Decision) -> bool:
    """The default rule: the target comes after the test that led to the node. The rank of the node
    itself does not count, so leaves have edges too."""
    return node.parent is not None and target.rank > node.parent.rank


def edges_between(one: Decision, other: Decision, rule: Rule = is_after_test) -> list[Edge]:
    """The edges that lead from nodes of one filter to nodes of another."""
    found = []
    for node in one.walk():
        target = find_target(node.known, other)
        if node.parent is None or target is other or not rule(node, target):
            continue
        if target is not find_target(node.parent.known, other):
            found.append((node, target))
    return found


def class_key(node: Decision) -> ClassKey:
    """What is known at a node, as a key; nodes with the same key form a class."""
    return tuple(sorted((term, values.cuts) for term, values in node.known.items()))


class ImplicationGraph:
    """The diagrams of filters by name, their classes, and the edges from classes to nodes.

    New filters are evaluated without edges until `link` finds their edges.
    """

    def __init__(self) -> None:
        self.roots: dict[Hashable, Decision] = {}
        self.classes: dict[ClassKey, list[Decision]] = {}
        self.edges: dict[ClassKey, dict[Decision, None]] = {}
        self._unlinked: set[Hashable] = set()

    def add(self, root: Decision) -> None:
        """Add a filter, without edges."""
        self.roots[root.owner] = root
        self._unlinked.add(root.owner)

    def link(self) -> None:
        """Find the edges from and to the filters that were added since the last call."""
        fresh = self._unlinked
        self._unlinked = set()
        for owner in fresh:
            for node in self.roots[owner].walk():
                if node.parent is not None and not node.shared:
                    self.classes.setdefault(class_key(node), []).append(node)
        for one in self.roots.values():
            for other in self.roots.values():
                if one is not other and (one.owner in fresh or other.owner in fresh):
                    self._put(edges_between(one, other))
        self._reduce()

    def _put(self, edges: Iterable[Edge]) -> None:
        for node, target in edges:
            key = class_key(node)
            if class_key(target) != key:  # the members of a class move together without edges
                self.edges.setdefault(key, {})[target] = None

    def _reduce(self) -> None:
        """Leave out the edges that other edges imply by transitivity."""
        for key, targets in self.edges.items():
            over = {
                target
                for middle in targets
                for target in self.edges.get(class_key(middle), ())
                if target in targets and class_key(middle) != key and target is not middle
            }
            self.edges[key] = {one: None for one in targets if one not in over}

    def remove(self, owner: Hashable) -> None:
        """Remove a filter B. If A -> B -> C was the only path from A to C, A gets an edge to C."""
        root = self.roots.pop(owner)
        self._unlinked.discard(owner)
        gone = {id(node): node for node in root.walk()}
        lost: dict[ClassKey, dict[Decision, None]] = {}
        for node in gone.values():
            members = self.classes.get(class_key(node))
            if members is not None and node in members:
                members.remove(node)
                if not members:
                    del self.classes[class_key(node)]
                    lost[class_key(node)] = self.edges.pop(class_key(node), {})
        for key, targets in list(self.edges.items()):
            through = [one for one in targets if id(one) in gone]
            for one in through:
                del targets[one]
                for further in lost.get(class_key(one), {}):
                    if id(further) not in gone and further.owner not in self._owners(key):
                        targets.setdefault(further)
        self._reduce()

    def _owners(self, key: ClassKey) -> set[object]:
        return {member.owner for member in self.classes.get(key, ())}

    def targets_of(self, node: Decision) -> Iterator[Decision]:
        """The nodes that a node implies directly: the members of its class, and the targets of its
        edges."""
        key = class_key(node)
        yield from (member for member in self.classes.get(key, ()) if member is not node)
        yield from self.edges.get(key, ())
