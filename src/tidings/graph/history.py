"""The history of a graph: what a tag of an older version means in the graph as it is now.

    versions   floor ... v ... now
    numbers    the number that the next new node got, at each version
    gone       nodes that were taken out since, and the nodes to look at in their place: those that
               were right above, or the one that it became one with

A removed node is replaced by all nodes that covered it when it went. Those may be gone too; then
the ones that replace them count.

Cost: 8 bytes for each version, and an entry for each node that went. `forget` drops what no
preprocessor is old enough to need.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable


class History:
    """The past of a graph, from a version on."""

    def __init__(self, version: int, next_number: int) -> None:
        self.floor = version
        """The oldest version that is known here."""
        self._next = array("q", [next_number])  # by version, from the floor on
        self._gone: dict[int, tuple[int, tuple[int, ...]]] = {}  # version it went with; where to

    def gone(self, number: int, to: Iterable[int]) -> None:
        self._gone[number] = (self.floor + len(self._next), tuple(to))

    def changed(self, version: int, next_number: int) -> None:
        assert version == self.floor + len(self._next)
        self._next.append(next_number)

    def knows(self, version: int) -> bool:
        return self.floor <= version < self.floor + len(self._next)

    def first_since(self, version: int) -> int:
        """Nodes with this number or a higher one came after a version."""
        return self._next[version - self.floor]

    def now(self, numbers: Iterable[int]) -> set[int]:
        """The nodes that stand for these today; those that stay are among them."""
        found: set[int] = set()
        seen: set[int] = set()
        stack = list(numbers)
        while stack:
            number = stack.pop()
            if number in seen:
                continue
            seen.add(number)
            if number in self._gone:
                stack.extend(self._gone[number][1])
            else:
                found.add(number)
        return found

    def forget(self, version: int) -> None:
        """No preprocessor is older than this version any more."""
        version = min(version, self.floor + len(self._next) - 1)
        if version > self.floor:
            del self._next[: version - self.floor]
            self.floor = version
            self._gone = {n: entry for n, entry in self._gone.items() if entry[0] > version}
