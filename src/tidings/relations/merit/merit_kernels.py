"""Kernels that add up merits.

Nodes have slots, and hops have numbers. `hops` int32 [S] has the hop of each slot. `merits` float64
[S] is zero between two calls.
"""

from __future__ import annotations

from typing import Any

from tidings.matching.jit import short_kernel


@short_kernel
def add_up(
    slots: Any, weights: Any, hops: Any, merits: Any, tops: Any, counts: Any, scores: Any
) -> None:
    """Write the merit of each hop to `scores`: the sum of its best nodes, where the merit of a node
    is the sum of its weights.

    slots int32 [n], weights float64 [n]: a node may occur several times, once for each term.
    tops float64 [H, best], counts int64 [H]: scratch; scores float64 [H].
    """
    best = tops.shape[1]
    for hop in range(len(scores)):
        scores[hop] = 0.0
        counts[hop] = 0
    for at in range(len(slots)):
        merits[slots[at]] += weights[at]
    for at in range(len(slots)):
        slot = slots[at]
        merit = merits[slot]
        if merit == 0.0:  # counted already
            continue
        merits[slot] = 0.0
        hop = hops[slot]
        size = counts[hop]
        if size < best:
            counts[hop] = size + 1
        elif tops[hop, best - 1] >= merit:
            continue
        else:
            size = best - 1
        while size > 0 and tops[hop, size - 1] < merit:
            tops[hop, size] = tops[hop, size - 1]
            size -= 1
        tops[hop, size] = merit
    for hop in range(len(scores)):
        for at in range(counts[hop]):
            scores[hop] += tops[hop, at]
