"""Few clusters of a given radius that contain all values.

On a line, as times are, a sweep finds the fewest: the first value that is in no cluster has to be
in one, and the cluster that reaches furthest to the right begins with it.

    o  o   o      o o        the first cluster begins at the first value, and is 2 radii long;
    |---c---|     |---c---|  the next begins at the first value after it

On the globe, to find the fewest is hard, and the greedy choice is used: the value around which most
values are still in no cluster becomes a centre.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

Item = TypeVar("Item")


def sweep(positions: Iterable[float], radius: float) -> list[float]:
    """The centres of the fewest clusters."""
    centres: list[float] = []
    reach = float("-inf")
    for position in sorted(positions):
        if position > reach:
            centres.append(position + radius)
            reach = position + 2 * radius
    return centres


def choose_centres(
    items: Sequence[Item], around: Callable[[Item], Iterable[Item]]
) -> list[tuple[Item, list[Item]]]:
    """Centres with their members, chosen greedily. `around` are the items within the radius, the
    item itself included; of equal choices, the first item wins."""
    order = {item: at for at, item in enumerate(items)}
    near = {item: [one for one in around(item) if one in order] for item in items}
    waiting = [(-len(near[item]), at, item) for item, at in order.items()]
    heapq.heapify(waiting)
    free = set(items)
    chosen: list[tuple[Item, list[Item]]] = []
    while free:
        count, at, item = heapq.heappop(waiting)
        members = [one for one in near[item] if one in free]
        if len(members) < -count:  # some were taken since: it waits for its new turn
            if members:
                heapq.heappush(waiting, (-len(members), at, item))
            continue
        if members:
            chosen.append((item, members))
            free.difference_update(members)
    return chosen
