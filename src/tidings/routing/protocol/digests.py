"""Digests of sets. A digest is updated when members are added or removed.

The digest of a set is the XOR of its hashed members, so adding a member and removing it are the
same operation. Two different sets of the same size have the same digest with a probability of 1 in
2**63.
"""

from __future__ import annotations

from collections.abc import Iterable

from tidings.routing.protocol.messages import Digest

_MASK = (1 << 64) - 1


def mix(number: int) -> int:
    """Hash a number to 63 bits, with the finaliser of SplitMix64."""
    mixed = (number + 0x9E3779B97F4A7C15) & _MASK
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
    return (mixed ^ (mixed >> 31)) >> 1


def digest(members: Iterable[int]) -> Digest:
    """The digest of a set, given its distinct members."""
    count = mixed = 0
    for member in members:
        count, mixed = count + 1, mixed ^ mix(member)
    return Digest(count, mixed)


class Tally:
    """The digest of a set of nodes and the sum of their totals."""

    __slots__ = ("mixed", "size", "sum")

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.size = self.mixed = self.sum = 0

    def add(self, node: int, total: int) -> None:
        self.size += 1
        self.mixed ^= mix(node)
        self.sum += total

    def remove(self, node: int, total: int) -> None:
        self.size -= 1
        self.mixed ^= mix(node)
        self.sum -= total

    def digest(self) -> Digest:
        return Digest(self.size, self.mixed)


def mix_edges(node: int, parents: Iterable[int]) -> int:
    """A digest of a node and its parents. The XOR of these digests is a digest of the edges."""
    mixed = mix(node)
    for parent in sorted(parents):
        mixed = mix(mixed ^ parent)
    return mixed
