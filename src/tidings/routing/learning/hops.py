"""The numbers by which the store of a node refers to neighbours. The number of a neighbour that is
gone is reused, so that arrays that are indexed by number stay short, however many neighbours come
and go."""

from __future__ import annotations

from tidings.routing.forwarding import Name


class Hops:
    """The neighbours that a store knows, and how many nodes it has for each."""

    def __init__(self) -> None:
        self._numbers: dict[Name, int] = {}
        self._names: list[Name] = []
        self._counts: list[int] = []
        self._free: list[int] = []

    def __len__(self) -> int:
        return len(self._numbers)

    def number(self, name: Name) -> int:
        """The number of a neighbour; a new number if it has none. The number stays in use at least
        until `count` is called with this number and -1."""
        found = self._numbers.get(name)
        if found is None:
            if not self._free:
                self._free.append(len(self._names))
                self._names.append(None)
                self._counts.append(0)
            found = self._numbers[name] = self._free.pop()
            self._names[found] = name
        self._counts[found] += 1
        return found

    def name(self, hop: object) -> Name:
        """The neighbour that has this number."""
        assert isinstance(hop, int)
        return self._names[hop]

    def count(self, hop: object, more: int) -> None:
        """Record that the store has `more` nodes for a neighbour than before; `more` is negative if
        it has fewer. When the store has no nodes left for a neighbour, the neighbour's number
        becomes free."""
        assert isinstance(hop, int)
        self._counts[hop] += more
        if not self._counts[hop]:
            del self._numbers[self._names[hop]]
            self._names[hop] = None
            self._free.append(hop)
