"""What waits, in turn: nobody's flood delays what others say.

    edge ──── link edge ─┬─ writer   ▇             one of each owner in turn,
                         ├─ trudy    ▇▇▇▇▇▇▇▇▇▇    of an owner one of each link,
                         └─ *        ▇▇▇▇          of a link one of each name,
    guests ─┬ link g1 ──── g1        ▇▇▇           of a name in the order in which it came
            └ link g2 ──── g2        ▇▇▇▇▇▇▇▇▇

So however many links somebody has and however many names it says, they share what one owner gets: a
bound name, or a token of guests. A turn that takes long counts as many. Cost: O(1) to put, and to
take the logarithm of how many owners wait.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Generic, TypeVar

from tidings.network import Link

TURN = 0.0001  # seconds that a turn takes at least, as it is counted
MOST_USED = 10_000  # owners of whom it is known how long they took

Item = TypeVar("Item")
Queues = dict[Link, dict[str, deque[tuple[Item, int]]]]


class Turns(Generic[Item]):
    """Items of links, by names. Links are read from as long as not too much of theirs waits."""

    def __init__(self, reason: str, most: int, most_of_all: int) -> None:
        """`reason` is that for which a link is not read from; `most` is how much of what waits may
        be of one link, in the unit of the sizes. A quarter of all may be of one owner."""
        self._reason = reason
        self._most, self._most_of_all = most, most_of_all
        self._most_of_owner = max(most, most_of_all // 4)
        self._queues: dict[str, Queues[Item]] = {}  # by owner
        self._turns: list[tuple[float, int, str]] = []  # a heap: what was used, and whose turn
        self._entries: dict[str, int] = {}  # which turn of an owner counts
        self._used: dict[str, float] = {}  # seconds, from those on that who is served has
        self._clock = 0.0  # what the last one that was served had used
        self._number = 0
        self._sizes: Counter[Link] = Counter()
        self._shares: Counter[str] = Counter()  # by owner
        self._size = 0
        self._paused: dict[str, set[Link]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def put(self, link: Link, name: str, item: Item, size: int = 1) -> None:
        owner = link.owner
        links = self._queues.get(owner)
        if links is None:
            links = self._queues[owner] = {}
            self._line_up(owner)
        links.setdefault(link, {}).setdefault(name, deque()).append((item, size))
        self._count += 1
        self._sizes[link] += size
        self._shares[owner] += size
        self._size += size
        if self._sizes[link] > self._most or self._has_much(owner, 1):
            self._paused.setdefault(owner, set()).add(link)
            link.read(self._reason, on=False)

    def take(self) -> tuple[Link, Item]:
        """The next one; IndexError if there is none."""
        owner = self._next_owner()
        links = self._queues[owner]
        link = next(iter(links))
        names = links.pop(link)
        name = next(iter(names))
        queue = names.pop(name)
        item, size = queue.popleft()
        if queue:
            names[name] = queue  # behind the others
        if names:
            links[link] = names
        self.charge(link, TURN)
        if links:
            self._line_up(owner)
        else:
            del self._queues[owner], self._entries[owner]
        self._count -= 1
        self._lighten(link, size)
        return link, item

    def serve(self, take: Callable[[Link, Item], None], until: float) -> None:
        """Give what waits to `take`, at least one, as long as the clock is before `until`; then
        read again from those of whom little waits by now."""
        before = time.monotonic()
        while self._count:
            link, item = self.take()
            take(link, item)
            now = time.monotonic()
            self.charge(link, max(0.0, now - before - TURN))
            before = now
            if now >= until:
                break
        if not self._count and len(self._used) > MOST_USED:
            self._used.clear()  # nobody waits for others
        self.resume()

    def charge(self, link: Link, seconds: float) -> None:
        """Something of a link took so long: others go before it until they had as much."""
        used = self._used.get(link.owner, 0.0)
        self._used[link.owner] = max(used, self._clock) + seconds

    def took(self, link: Link, seconds: float) -> None:
        """While nothing waited something of a link was done, and took so long. What was before it
        was at nobody's cost."""
        self._used.clear()
        self.charge(link, seconds)

    def forget(self, link: Link) -> None:
        """A link is over: whoever comes back says everything anew."""
        owner = link.owner
        names = self._queues.get(owner, {}).pop(link, None)
        if names is not None:
            self._count -= sum(map(len, names.values()))
            self._lighten(link, self._sizes[link])
            if not self._queues[owner]:
                del self._queues[owner], self._entries[owner]
        self._resumed(owner, link)

    def resume(self) -> None:
        """Read again from those of whom little waits by now."""
        for owner in [*self._paused]:
            if not self._has_much(owner, 2):
                for link in [*self._paused[owner]]:
                    if self._sizes[link] <= self._most // 2:
                        self._resumed(owner, link)
                        link.read(self._reason, on=True)

    def _has_much(self, owner: str, parts: int) -> bool:
        """Is an owner beyond a part of what it may have? Where all have too much, it may have as
        much as each of them could: who has little does not wait for those that have more."""
        share = self._shares[owner] * parts
        if share > self._most_of_owner:
            return True
        fair = self._most_of_all // max(1, len(self._shares))
        return self._size * parts > self._most_of_all and share > fair

    def _resumed(self, owner: str, link: Link) -> None:
        links = self._paused.get(owner, set())
        links.discard(link)
        if not links:
            self._paused.pop(owner, None)

    def _line_up(self, owner: str) -> None:
        self._number += 1
        self._entries[owner] = self._number
        used = max(self._clock, self._used.get(owner, 0.0))
        heappush(self._turns, (used, self._number, owner))

    def _next_owner(self) -> str:
        """Whose turn it is: of those that wait, who used least."""
        while True:
            used, number, owner = heappop(self._turns)
            if self._entries.get(owner) != number:
                continue  # it had its links ended meanwhile
            if self._used.get(owner, 0.0) > used:  # the last turn took longer than was known
                self._line_up(owner)
                continue
            self._clock = used
            return owner

    def _lighten(self, link: Link, size: int) -> None:
        self._size -= size
        self._sizes[link] -= size
        if not self._sizes[link]:
            del self._sizes[link]
        self._shares[link.owner] -= size
        if not self._shares[link.owner]:
            del self._shares[link.owner]
