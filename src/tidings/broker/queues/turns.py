"""What waits, in turn: nobody's flood delays what others say.

    edge ──── link edge ─┬─ writer   ▇             one of each owner in turn,
                         ├─ trudy    ▇▇▇▇▇▇▇▇▇▇    of an owner one of each link,
                         └─ *        ▇▇▇▇          of a link one of each name,
    guests ─┬ link g1 ──── g1        ▇▇▇           of a name in the order in which it came
            └ link g2 ──── g2        ▇▇▇▇▇▇▇▇▇

So however many links somebody has and however many names it says, they share what one owner gets: a
bound name, or a token of guests. A turn that takes long counts as many, for the owner, the link and
the name. Cost: the logarithm of how many wait.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Hashable
from heapq import heappop, heappush
from typing import Generic, TypeVar

from tidings.network import Link

TURN = 0.0001  # seconds that a turn takes at least, as it is counted
MOST_USED = 10_000  # of whom it is known how long they took

Item = TypeVar("Item")
Key = TypeVar("Key", bound=Hashable)


class FairLine(Generic[Key]):
    """Those that wait: who had the least time is the next. Whoever comes has had as much as the one
    that was served last, or more if it is known to have."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Key]] = []  # what was used, and whose turn
        self._turns: dict[Key, int] = {}  # which turn of each counts
        self._used: dict[Key, float] = {}  # seconds
        self._clock = 0.0  # what the last one that was served had used
        self._number = 0

    def __len__(self) -> int:
        return len(self._turns)

    def __contains__(self, key: Key) -> bool:
        return key in self._turns

    def join(self, key: Key) -> None:
        """Wait, behind those that had as much."""
        self._number += 1
        self._turns[key] = self._number
        heappush(self._heap, (max(self._clock, self._used.get(key, 0.0)), self._number, key))

    def leave(self, key: Key) -> None:
        self._turns.pop(key, None)

    def pop(self) -> Key:
        """The next one, which waits no more; IndexError if there is none."""
        while True:
            used, number, key = heappop(self._heap)
            if self._turns.get(key) != number:
                continue  # it left
            if self._used.get(key, 0.0) > used:  # its last turn took longer than was known
                self.join(key)
                continue
            self._clock = used
            del self._turns[key]
            return key

    def charge(self, key: Key, seconds: float) -> None:
        self._used[key] = max(self._used.get(key, 0.0), self._clock) + seconds
        if len(self._used) > MOST_USED:  # those that others have caught up with
            self._used = {one: used for one, used in self._used.items() if used > self._clock}

    def forgive(self) -> None:
        """Nobody waits for others: what was used so far does not count any more."""
        self._used.clear()


class Turns(Generic[Item]):
    """Items of links, by names. Links are read from as long as not too much of theirs waits."""

    def __init__(self, reason: str, most: int, most_of_all: int) -> None:
        """`reason` is that for which a link is not read from; `most` is how much of what waits may
        be of one link, in the unit of the sizes. A quarter of all may be of one owner."""
        self._reason = reason
        self._most, self._most_of_all = most, most_of_all
        self._most_of_owner = max(most, most_of_all // 4)
        self._owners: FairLine[str] = FairLine()
        self._links: dict[str, FairLine[Link]] = {}  # of each owner
        self._names: dict[Link, FairLine[str]] = {}
        self._queues: dict[Link, dict[str, deque[tuple[Item, int]]]] = {}
        self._sizes: Counter[Link] = Counter()
        self._shares: Counter[str] = Counter()  # by owner
        self._size = 0
        self._paused: dict[str, set[Link]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def put(self, link: Link, name: str, item: Item, size: int = 1) -> None:
        owner = link.owner
        queue = self._queues.setdefault(link, {}).setdefault(name, deque())
        queue.append((item, size))
        if len(queue) == 1:
            self._wait(owner, link, name)
        self._count += 1
        self._sizes[link] += size
        self._shares[owner] += size
        self._size += size
        if self._sizes[link] > self._most or self._has_much(owner, 1):
            self._paused.setdefault(owner, set()).add(link)
            link.read(self._reason, on=False)

    def _wait(self, owner: str, link: Link, name: str) -> None:
        links = self._links.setdefault(owner, FairLine())
        names = self._names.setdefault(link, FairLine())
        names.join(name)
        if link not in links:
            links.join(link)
        if owner not in self._owners:
            self._owners.join(owner)

    def take(self) -> tuple[Link, Item]:
        """The next one; IndexError if there is none."""
        link, _, item = self._take()
        return link, item

    def _take(self) -> tuple[Link, str, Item]:
        owner = self._owners.pop()
        link = self._links[owner].pop()
        name = self._names[link].pop()
        queue = self._queues[link][name]
        item, size = queue.popleft()
        self._charge(link, name, TURN)
        if queue:
            self._names[link].join(name)
        else:
            del self._queues[link][name]
        if self._names[link]:
            self._links[owner].join(link)
        else:
            del self._names[link], self._queues[link]
        if self._links[owner]:
            self._owners.join(owner)
        else:
            del self._links[owner]
        self._count -= 1
        self._lighten(link, size)
        return link, name, item

    def serve(self, take: Callable[[Link, Item], None], until: float) -> None:
        """Give what waits to `take`, at least one, as long as the clock is before `until`; then
        read again from those of whom little waits by now."""
        before = time.monotonic()
        while self._count:
            link, name, item = self._take()
            take(link, item)
            now = time.monotonic()
            self._charge(link, name, max(0.0, now - before - TURN))
            before = now
            if now >= until:
                break
        self.resume()

    def charge_alone(self, link: Link, seconds: float) -> None:
        """While nothing waited something of a link was done, and took so long. What was before it
        was at nobody's cost."""
        self._owners.forgive()
        self._owners.charge(link.owner, seconds)

    def _charge(self, link: Link, name: str, seconds: float) -> None:
        """Others go before it until they had as much, each among its like."""
        self._owners.charge(link.owner, seconds)
        if link.owner in self._links:
            self._links[link.owner].charge(link, seconds)
        if link in self._names:
            self._names[link].charge(name, seconds)

    def forget(self, link: Link) -> None:
        """A link is over: whoever comes back says everything anew."""
        owner = link.owner
        queues = self._queues.pop(link, None)
        if queues is not None:
            del self._names[link]
            self._count -= sum(map(len, queues.values()))
            self._lighten(link, self._sizes[link])
            self._links[owner].leave(link)
            if not self._links[owner]:
                del self._links[owner]
                self._owners.leave(owner)
        self._unpause(owner, link)

    def resume(self) -> None:
        """Read again from those of whom little waits by now."""
        for owner in [*self._paused]:
            if not self._has_much(owner, 2):
                for link in [*self._paused[owner]]:
                    if self._sizes[link] <= self._most // 2:
                        self._unpause(owner, link)
                        link.read(self._reason, on=True)

    def _has_much(self, owner: str, parts: int) -> bool:
        """Is an owner beyond a part of what it may have? Where all have too much, it may have as
        much as each of them could: who has little does not wait for those that have more."""
        share = self._shares[owner] * parts
        if share > self._most_of_owner:
            return True
        fair = self._most_of_all // max(1, len(self._shares))
        return self._size * parts > self._most_of_all and share > fair

    def _unpause(self, owner: str, link: Link) -> None:
        links = self._paused.get(owner, set())
        links.discard(link)
        if not links:
            self._paused.pop(owner, None)

    def _lighten(self, link: Link, size: int) -> None:
        self._size -= size
        self._sizes[link] -= size
        if not self._sizes[link]:
            del self._sizes[link]
        self._shares[link.owner] -= size
        if not self._shares[link.owner]:
            del self._shares[link.owner]
