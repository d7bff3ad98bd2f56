"""The versions of a channel, and the nodes that replace removed nodes.

    numbers    1   2   3   4        16777217   16777218         one counter for everything
               +a  +b  -a  +c   │   +d         -b               + a node begins, - one ends
               life A           │   life B, which begins far above

Each change of the nodes takes the next number. A node is identified by the number with which it
began; the *version* is the number of the last change. So at version 3 the nodes are those up to 3
that ended after 3. Numbers are never reused, and each life of a rendezvous point begins above a
random gap (see `Lineage.first_node`). So a version from a life that a restored journal has
forgotten is never mistaken for a version of this lineage.

A tag from an older version may name nodes that have been removed since. Such a tag also relies on
coverings that were known then. So the history keeps, for each removed node, what was around it:
nodes with the same filter written differently, the nodes above and the nodes below.

Cost: an entry for each removed node, and 8 bytes for each node around it. Beyond MOST_AROUND
entries, the oldest are dropped, and with them the versions before `floor`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

MOST_AROUND = 1_000_000  # removed nodes and nodes around them, together
MOST_SPANS = 256  # lives whose versions are known


class Gone(msgspec.Struct, frozen=True, array_like=True):
    """A removed node: the version that removed it, and the nodes around it then."""

    version: int
    equal: tuple[int, ...] = ()  # nodes with the same filter, written differently
    above: tuple[int, ...] = ()  # its parents
    below: tuple[int, ...] = ()  # the children of the node; empty if nothing was above it
    count: int = 0  # its last number
    latest: int = 0  # the serial of the notification with that number

    @property
    def size(self) -> int:
        return 1 + len(self.equal) + len(self.above) + len(self.below)


class History(msgspec.Struct):
    """The past of a channel's nodes, as far as it is needed. The journal stores the history too."""

    life: int = 0
    """The first life of the lineage. It changes when numbers begin anew."""
    version: int = 0
    floor: int = 0
    """The oldest version since which every removed node is known."""
    renewed: int = 0
    """Whoever follows from an older version has to start over."""
    base: int = 0
    """The numbers of this life are above it."""
    spans: list[tuple[int, int]] = []
    """The numbers that earlier lives gave: above the first, up to the second."""
    hidden: tuple[int, ...] = ()
    """Stored nodes that are not in the graph, because their filters are refused now."""
    declaration: str = ""
    """The declared attributes for which all this holds."""
    gone: dict[int, Gone] = {}
    """Removed nodes, in the order of the versions that removed them."""
    around: int = 0
    """The sum of the sizes of these."""

    # -- what happens --------------------------------------------------------------------------

    def begin_life(self, life: int, base: int, *, broken: bool) -> None:
        """Record a start of the rendezvous point. After a loss, nothing before it is known."""
        if broken or not self.life:
            self.life = life
            self.floor = self.renewed = self.version
            self.spans, self.gone, self.around = [], {}, 0
        elif self.version > self.base:
            self.spans = [*self.spans, (self.base, self.version)][-MOST_SPANS:]
        self.base = base

    def add(self, node: int) -> None:
        self.version = max(self.version, node)

    def drop(self, node: int, gone: Gone) -> None:
        # the journal is from before this version, which did not number removals
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
        """Record that filters are now interpreted in another way, so that all followers start
        over."""
        self.version = self.renewed = max(self.version, version)
        self.hidden, self.declaration = tuple(hidden), declaration

    # -- what was ------------------------------------------------------------------------------

    def knows(self, version: int) -> bool:
        """Whether this is a version of this lineage since which every removed node is known."""
        if not self.floor <= version <= self.version:
            return False
        spans = [*self.spans, (self.base, self.version)]
        return version == self.floor or any(above < version <= upto for above, upto in spans)

    def changed_since(self, version: int) -> bool:
        """Whether followers can get all changes since a version."""
        return version >= self.renewed and self.knows(version)

    def stands_for(self, nodes: Iterable[int]) -> set[int]:
        """The given nodes, with removed nodes replaced by others. The replacements exist, but need
        not be the lowest, and some may never have existed here."""
        return self._follow(nodes, lambda gone: gone.equal or gone.above)

    def lay_below(self, nodes: Iterable[int]) -> set[int]:
        """The nodes that these nodes covered when they existed."""
        return self._follow(nodes, lambda gone: gone.equal or gone.below)

    def _follow(self, nodes: Iterable[int], to: Callable[[Gone], Iterable[int]]) -> set[int]:
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
