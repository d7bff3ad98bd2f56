"""The versions of a channel, and the nodes that replace removed nodes.

    numbers    1   2   3   4        16777217   16777218         one counter for all changes
               +a  +b  -a  +c   │   +d         -b               + a node begins, - a node ends
               life A           │   life B, whose numbers begin after a gap

Each change to the nodes takes the next number. The number of the change that adds a node becomes
the node's number; the *version* is the number of the last change. So the nodes at version 3 are
those that were added at version 3 or earlier, and had not been removed by then. Numbers are never
reused, and each life of a rendezvous point begins after a random gap (see `Lineage.first_node`). So
a version from a life that a restored journal lacks is never mistaken for a version of this lineage.

A tag from an older version may name nodes that were removed since. Such a tag also relies on what
was known at that version about which node covers which. So the history keeps the neighbourhood of
each removed node: nodes with an equal filter that is written differently, its parents and its
children.

Cost: an entry for each removed node, and 8 bytes for each node in its neighbourhood. Beyond
MOST_AROUND entries, the oldest are dropped, and with them the versions before `floor`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from tidings.routing.protocol.messages import Step

MOST_AROUND = 1_000_000  # removed nodes and the nodes in their neighbourhoods, together
MOST_SPANS = 256  # lives whose versions are known


class RemovedNode(msgspec.Struct, frozen=True, array_like=True):
    """A removed node: the version at which it was removed, and its neighbourhood before that."""

    version: int
    equal: tuple[int, ...] = ()  # nodes with the same filter, written differently
    above: tuple[int, ...] = ()  # the parents of the node
    below: tuple[int, ...] = ()  # the children of the node; empty if it had no parents
    count: int = 0  # the last number of the node
    latest: int = 0  # the serial of the notification with that number
    step: Step | None = None  # leads the node's subscribers to another node, after a revision

    @property
    def size(self) -> int:
        around = len(self.equal) + len(self.above) + len(self.below)
        return 1 + around + (0 if self.step is None else self.step.size)


class History(msgspec.Struct):
    """The versions and the removed nodes of a channel. The journal also stores the history."""

    life: int = 0
    """The first life of the lineage. It changes after a loss, when a new lineage begins."""
    version: int = 0
    floor: int = 0
    """Every node that was removed after this version is known."""
    renewed: int = 0
    """A follower at an older version must start over."""
    base: int = 0
    """All numbers that this life uses are above this one."""
    spans: list[tuple[int, int]] = []
    """For each earlier life, two numbers: the life used the numbers above the first, up to the
    second."""
    hidden: tuple[int, ...] = ()
    """Stored nodes that are not in the graph, because their filters are refused now."""
    declaration: str = ""
    """The declared attributes with which the nodes were computed."""
    gone: dict[int, RemovedNode] = {}
    """Removed nodes, in the order of the versions that removed them."""
    around: int = 0
    """The sum of the sizes of the removed nodes."""

    # -- what happens --------------------------------------------------------------------------

    def begin_life(self, life: int, base: int, *, broken: bool) -> None:
        """Record a start of the rendezvous point. After a loss, the earlier history is dropped."""
        if broken or not self.life:
            self.life = life
            self.floor = self.renewed = self.version
            self.spans, self.gone, self.around = [], {}, 0
        elif self.version > self.base:
            self.spans = [*self.spans, (self.base, self.version)][-MOST_SPANS:]
        self.base = base

    def add(self, node: int) -> None:
        self.version = max(self.version, node)

    def drop(self, node: int, gone: RemovedNode) -> None:
        # in journals of older releases, removals have no version
        if not gone.version:
            self.floor = self.renewed = self.version
            return
        self.version = max(self.version, gone.version)
        self.gone[node] = gone
        self.around += gone.size
        while self.around > MOST_AROUND:
            oldest = next(iter(self.gone))
            self.floor = self.gone[oldest].version
            self.around -= self.gone.pop(oldest).size

    def renew(self, version: int, hidden: Iterable[int], declaration: str) -> None:
        """Record that filters are now interpreted differently, so that all followers start
        over."""
        self.version = self.renewed = max(self.version, version)
        self.hidden, self.declaration = tuple(hidden), declaration

    # -- what was ------------------------------------------------------------------------------

    def knows(self, version: int) -> bool:
        """Whether this lineage had the version, and the history has every node that was removed
        since then."""
        if not self.floor <= version <= self.version:
            return False
        spans = [*self.spans, (self.base, self.version)]
        return version == self.floor or any(above < version <= upto for above, upto in spans)

    def has_changes_since(self, version: int) -> bool:
        """Whether followers can get all changes since a version."""
        return version >= self.renewed and self.knows(version)

    def stands_for(self, nodes: Iterable[int]) -> set[int]:
        """The given nodes, with each removed node replaced by nodes with an equal filter, or by its
        parents. The result may contain nodes that are not the lowest, and nodes that were never
        known."""
        return self._follow(nodes, lambda gone: gone.equal or gone.above)

    def lay_below(self, nodes: Iterable[int]) -> set[int]:
        """The given nodes, with each removed node replaced by nodes with an equal filter, or by its
        children."""
        return self._follow(nodes, lambda gone: gone.equal or gone.below)

    def _follow(self, nodes: Iterable[int], to: Callable[[RemovedNode], Iterable[int]]) -> set[int]:
        found: set[int] = set()
        seen: set[int] = set()
        todo = [*nodes]
        while todo:
            node = todo.pop()
            if node in seen:
                continue
            seen.add(node)
            gone = self.gone.get(node)
            if gone is None:
                found.add(node)
            else:
                todo += to(gone)
        return found

    def copy(self) -> History:
        return msgspec.structs.replace(self, gone=dict(self.gone), spans=list(self.spans))
