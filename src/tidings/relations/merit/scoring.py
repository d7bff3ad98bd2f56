"""Compute the merits of hops from the merits of nodes, and choose the hops that are served at once.

The merit of a hop is the sum of the merits of its best nodes:

    node   hop  merit          SCORE of a hop: the sum of its 10 best nodes
    n1     B    1.66           B  1.66 + 0.7 = 2.36    served at once if the limit is 2,
    n2     B    0.70           C  1.00                 or if the best hop is to be served
    n3     C    1.00
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterable, Mapping

import msgspec

from tidings.model import AttributesError
from tidings.relations.clusters import Hit


class Limit(msgspec.Struct, frozen=True):
    """Which hops are served at once: those with a merit of at least `merit` or, if `hops` is given,
    this many hops with the highest merits, and further hops with the same merit as the last of
    these."""

    merit: float = 1.0
    hops: int | None = None

    def __post_init__(self) -> None:
        if not self.merit > 0:
            raise AttributesError(f"found the limit {self.merit}, expected a number above 0")
        if self.hops is not None and self.hops < 1:
            raise AttributesError(f"found {self.hops} hops to be served, expected at least 1")


def score_hops(hits: Iterable[Hit], best: int) -> dict[Hashable, float]:
    """The merit of each hop: the sum of its best nodes. Only tests call this; kernels compute the
    same from arrays."""
    merits: dict[Hashable, list[float]] = {}
    for hit in hits:
        merits.setdefault(hit.node.hop, []).append(hit.merit)
    return {hop: sum(heapq.nlargest(best, found)) for hop, found in merits.items()}


def choose_hops(scores: Mapping[Hashable, float], limit: Limit) -> dict[Hashable, float]:
    """The hops that are served at once, with their merits."""
    least = limit.merit
    if limit.hops is not None:
        chosen = heapq.nlargest(limit.hops, scores.values())
        least = chosen[-1] if chosen else 0.0
    return {hop: score for hop, score in scores.items() if score >= least and score > 0}


def best_nodes(hits: Iterable[Hit], count: int) -> list[Hit]:
    """The nodes with the highest merits."""
    return heapq.nsmallest(count, hits, key=lambda hit: (-hit.merit, hit.node.number))
