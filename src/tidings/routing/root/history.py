"""The versions of a channel, and what stood in the place of nodes that are gone.

    numbers    1   2   3   4        16777217   16777218         one counter for everything
               +a  +b  -a  +c   │   +d         -b               + a node begins, - one ends
               life A           │   life B, which begins far above

Each change of the nodes takes the next number. A node is known by the number with which it began;
the *version* is the number of the last change. So at version 3 the nodes are those up to 3 that
ended after 3. Numbers are never given again, and each life of a rendezvous point begins above a
random gap (see `Lineage.first_node`). So a version that was given by a life which a restored
journal has forgotten is never mistaken for one of this lineage.

Whoever tagged a notification at an older version may name nodes that are gone by now. Its tag also
rests on coverings that were known then. So for each removed node this keeps what was around it:
nodes with the same filter in other words, the nodes above and the nodes below.

Cost: an entry for each removed node, and 8 bytes for each node around it. Beyond MOST_AROUND of
these the oldest go, and with them the versions before (`floor`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

MOST_AROUND = 1_000_000  # removed nodes and nodes around them, together
MOST_SPANS = 256  # lives whose versions are known


class Gone(msgspec.Struct, frozen=True, array_like=True):
    """A removed node: the version that removed it, and the nodes around it then."""

    version: int
    equal: tuple[int, ...] = ()  # with the same filter in other words
    above: tuple[int, ...] = ()  # its parents
    below: tuple[int, ...] = ()  # its children; empty if nothing was above it

    @property
    def size(self) -> int:
        return 1 + len(self.equal) + len(self.above) + len(self.below)


class History(msgspec.Struct):
    """The past of a channel's nodes, as far as it is needed. The journal keeps it too."""

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
        """Note a start of the rendezvous point. After a loss, nothing before it is known."""
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
        if not gone.version:  # from a journal of before, which did not number this
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
        """Note that filters are read in another way now: everybody starts over."""
        self.version = self.renewed = max(self.version, version)
        self.hidden, self.declaration = tuple(hidden), declaration

    # -- what was ------------------------------------------------------------------------------

    def knows(self, version: int) -> bool:
        """Is this a version of this lineage since which every removed node is known?"""
        if not self.floor <= version <= self.version:
            return False
        spans = [*self.spans, (self.base, self.version)]
        return version == self.floor or any(above < version <= upto for above, upto in spans)

    def changed_since(self, version: int) -> bool:
        """Are all changes since a version known to those who follow?"""
        return version >= self.renewed and self.knows(version)

    def stands_for(self, nodes: Iterable[int]) -> set[int]:
        """These nodes, with others in the place of those that are gone. They are not gone, but need
        not be the lowest, and some may never have been here."""
        return self._follow(nodes, lambda gone: gone.equal or gone.above)

    def lay_below(self, nodes: Iterable[int]) -> set[int]:
        """The same downwards: what these nodes covered when they were there."""
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
