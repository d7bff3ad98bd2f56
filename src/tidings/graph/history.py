"""The history of a graph, which translates tags of older versions to the current graph.

    versions   floor ... v ... now
    numbers    for each version, the number that the next new node would get
    gone       for each removed node, its substitutes: its parents at that time, or the node that it
               was merged into

A substitute may itself have been removed; then its own substitutes are used.

Cost: 8 bytes for each version, and one entry for each removed node. `forget` drops the versions
before a given one, such as the version of the oldest copy.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable


class History:
    """The past of a graph, back to the version `floor`."""

    def __init__(self, version: int, next_number: int) -> None:
        self.floor = version
        """The oldest known version."""
        self._next = array("q", [next_number])  # by version, the number of the next new node
        # for each removed node, the version that removed it, and its substitutes
        self._gone: dict[int, tuple[int, tuple[int, ...]]] = {}

    def note_removal(self, number: int, to: Iterable[int]) -> None:
        self._gone[number] = (self.floor + len(self._next), tuple(to))

    def note_version(self, version: int, next_number: int) -> None:
        assert version == self.floor + len(self._next)
        self._next.append(next_number)

    def knows(self, version: int) -> bool:
        return self.floor <= version < self.floor + len(self._next)

    def first_since(self, version: int) -> int:
        """The lowest number that a node added after this version can have."""
        return self._next[version - self.floor]

    def now(self, numbers: Iterable[int]) -> set[int]:
        """The current nodes for these numbers; substitutes take the place of removed nodes."""
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
        """Forget the history before this version."""
        version = min(version, self.floor + len(self._next) - 1)
        if version > self.floor:
            del self._next[: version - self.floor]
            self.floor = version
            self._gone = {n: entry for n, entry in self._gone.items() if entry[0] > version}
