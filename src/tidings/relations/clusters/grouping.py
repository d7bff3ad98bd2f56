"""Group values into few clusters of a given radius.

For values on a line, such as times, a sweep finds the fewest clusters: the first value without a
cluster needs one, and the cluster that begins at this value reaches furthest to the right.

    o  o   o      o o        the first cluster begins at the first value, and is 2 radii long;
    |---c---|     |---c---|  the next begins at the first value after it

For places on the globe, finding the fewest clusters is hard, so the choice is greedy: the value
with the most values around it that have no cluster yet becomes a centre.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

Item = TypeVar("Item")


def sweep(positions: Iterable[float], radius: float) -> list[float]:
    """The centres of the fewest clusters that contain all positions."""
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
    """Centres with their members, chosen greedily. `around` returns the items within the radius of
    an item, including the item itself; among equally good items, the first is chosen."""
    order = {item: at for at, item in enumerate(items)}
    near = {item: [one for one in around(item) if one in order] for item in items}
    waiting = [(-len(near[item]), at, item) for item, at in order.items()]
    heapq.heapify(waiting)
    free = set(items)
    chosen: list[tuple[Item, list[Item]]] = []
    while free:
        count, at, item = heapq.heappop(waiting)
        members = [one for one in near[item] if one in free]
        if len(members) < -count:  # other clusters took some members: queue it again
            if members:
                heapq.heappush(waiting, (-len(members), at, item))
            continue
        if members:
            chosen.append((item, members))
            free.difference_update(members)
    return chosen
