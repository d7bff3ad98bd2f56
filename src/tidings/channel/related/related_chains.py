"""The related nodes of a channel, in chains above exact nodes; higher nodes want more messages.

    0.5 ──> 0.7 ──> 0.9 ──> city = 'Chicago'      each covers the next: related by at least
                                                  0.7 is also related by at least 0.5

The only known coverings of a related node are those in its chain: higher nodes of the chain cover
it, and it directly covers only the next node of the chain. Its exact node must exist for as long as
the related node does.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import NamedTuple


class ChainLink(NamedTuple):
    """A related node, and the lowest weight of the notifications that it wants."""

    least: float
    node: int


class RelatedChains:
    """The related nodes, by the exact nodes below them."""

    def __init__(self) -> None:
        self.bases: dict[int, int] = {}
        """The exact node of each related node."""
        self._chains: dict[int, list[ChainLink]] = {}

    def __len__(self) -> int:
        return len(self.bases)

    def chain(self, exact: int) -> list[ChainLink]:
        """The related nodes of an exact node; the first wants the most notifications."""
        return self._chains.get(exact, [])

    def least(self, node: int) -> float:
        """The weight that a notification needs, at least, for a related node to want it."""
        return next(one.least for one in self._chains[self.bases[node]] if one.node == node)

    def find(self, exact: int, least: float) -> int | None:
        """The node that wants notifications that are related to a filter by at least `least`."""
        return next((one.node for one in self.chain(exact) if one.least == least), None)

    def add(self, node: int, exact: int, least: float) -> None:
        chain = self._chains.setdefault(exact, [])
        chain.insert(bisect_left(chain, ChainLink(least, node)), ChainLink(least, node))
        self.bases[node] = exact

    def remove(self, node: int) -> int:
        """Remove a related node; return its exact node."""
        exact = self.bases.pop(node)
        left = [one for one in self._chains[exact] if one.node != node]
        if left:
            self._chains[exact] = left
        else:
            del self._chains[exact]
        return exact

    def place(self, node: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The related node's parent in its chain, if any, and its child."""
        exact = self.bases[node]
        chain = [one.node for one in self._chains[exact]] + [exact]
        at = chain.index(node)
        return tuple(chain[max(at - 1, 0) : at]), (chain[at + 1],)

    def tops(self) -> dict[int, int]:
        """For each exact node with related nodes, the related node that covers it directly."""
        return {exact: chain[-1].node for exact, chain in self._chains.items()}
