"""Group values into few clusters of a given radius.

For values on a line, such as times, a sweep finds the fewest clusters: the first value that is in
no cluster begins a new one, which thus reaches as far to the right as possible.

    o  o   o      o o        the first cluster begins at the first value, and is 2 radii long;
    |---c---|     |---c---|  the next begins at the first value after it

For places on the globe, finding the fewest clusters is hard, so the choice is greedy: for each
value, count the values around it that still belong to no cluster; the value with the highest count
becomes a centre.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

Item = TypeVar("Item")
STEP = 32  # how many items one step handles
RUN = 512  # how many items one step sorts


def sweep(positions: Iterable[float], radius: float) -> list[float]:
    """The centres of the fewest clusters that contain all positions."""
    groups = sweep_slowly(list(positions), float, radius)
    return [group[0] for group in groups if group is not None]


def choose_centres(
    items: Sequence[Item], around: Callable[[Item], Iterable[Item]]
) -> list[tuple[Item, list[Item]]]:
    """Choose centres greedily; return each with its members. `around` returns the items within the
    radius of an item, including the item itself; among equally good items, the first is chosen."""
    chosen = choose_slowly(items, lambda item: sum(1 for _ in around(item)), around)
    return [group for group in chosen if group is not None]


def choose_slowly(
    items: Sequence[Item],
    bound: Callable[[Item], int],
    around: Callable[[Item], Iterable[Item | None]],
) -> Iterator[tuple[Item, list[Item]] | None]:
    """Like `choose_centres`, but in short steps: None is yielded after each step. `bound` returns
    an upper bound for the number of items within the radius of an item. `around` may yield None
    after each of its own steps. It may yield items that are not among `items`; they are ignored.

    An item is counted only when no other item can have more items around it, so a dense group of
    items is counted only once.
    """
    waiting: list[tuple[int, int]] = []
    free: set[Item] = set()
    for at, item in enumerate(items):
        free.add(item)
        heapq.heappush(waiting, (-bound(item), at))
        if at % STEP == STEP - 1:
            yield None
    while free:
        _, at = heapq.heappop(waiting)
        members = []
        for one in around(items[at]):
            if one is None:
                yield None
            elif one in free:
                members.append(one)
        if members and waiting and (-len(members), at) > waiting[0]:  # another may now be better
            heapq.heappush(waiting, (-len(members), at))
        elif members:
            for first in range(0, len(members), STEP):
                free.difference_update(members[first : first + STEP])
                yield None
            yield items[at], members
        yield None


def sweep_slowly(
    items: Sequence[Item], position: Callable[[Item], float], radius: float
) -> Iterator[tuple[float, list[Item]] | None]:
    """The fewest clusters of items by position. Each cluster is given as its centre and its
    members. None is yielded after each short step."""
    runs: list[list[Item]] = []
    for at in range(0, len(items), RUN):
        runs.append(sorted(items[at : at + RUN], key=position))
        yield None
    centre, members = 0.0, list[Item]()
    for number, item in enumerate(heapq.merge(*runs, key=position)):
        if members and position(item) > centre + radius:
            yield centre, members
            members = []
        if not members:
            centre = position(item) + radius
        members.append(item)
        if number % STEP == STEP - 1:
            yield None
    if members:
        yield centre, members
