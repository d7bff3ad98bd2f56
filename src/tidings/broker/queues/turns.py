"""Fair queues: nobody's flood delays the messages of others.

    edge ──── link edge ─┬─ writer   ▇             one of each owner in turn,
                         ├─ trudy    ▇▇▇▇▇▇▇▇▇▇    of an owner one of each link,
                         └─ *        ▇▇▇▇          of a link one of each name,
    guests ─┬ link g1 ──── g1        ▇▇▇           of a name in the order in which it came
            └ link g2 ──── g2        ▇▇▇▇▇▇▇▇▇

So however many links and names an owner has, they share the turns of one owner: a bound name, or a
guest token. A turn that takes long counts as several, for the owner, the link and the name. Cost:
the logarithm of how many wait.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Hashable
from heapq import heappop, heappush
from typing import Generic, TypeVar

from tidings.network import Link

TURN = 0.0001  # seconds that a turn counts at least
MOST_USED = 10_000  # keys whose used time is remembered

Item = TypeVar("Item")
Key = TypeVar("Key", bound=Hashable)


class FairLine(Generic[Key]):
    """A line of keys; the one that used the least time is next. A newcomer counts as if it had used
    as much as the last one that was served, or more if it is known to have."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Key]] = []  # seconds used, number of the turn, key
        self._turns: dict[Key, int] = {}  # the turn of each key that is valid
        self._used: dict[Key, float] = {}  # seconds
        self._clock = 0.0  # seconds that the last served key had used
        self._number = 0

    def __len__(self) -> int:
        return len(self._turns)

    def __contains__(self, key: Key) -> bool:
        return key in self._turns

    def join(self, key: Key) -> None:
        """Join the line, behind keys that used as much."""
        self._number += 1
        self._turns[key] = self._number
        heappush(self._heap, (max(self._clock, self._used.get(key, 0.0)), self._number, key))

    def leave(self, key: Key) -> None:
        self._turns.pop(key, None)

    def pop(self) -> Key:
        """Remove and return the next key; IndexError if there is none."""
        while True:
            used, number, key = heappop(self._heap)
            if self._turns.get(key) != number:
                continue  # it left
            if self._used.get(key, 0.0) > used:  # it was charged since it joined
                self.join(key)
                continue
            self._clock = used
            del self._turns[key]
            return key

    def charge(self, key: Key, seconds: float) -> None:
        self._used[key] = max(self._used.get(key, 0.0), self._clock) + seconds
        if len(self._used) > MOST_USED:  # drop keys that others have caught up with
            self._used = {one: used for one, used in self._used.items() if used > self._clock}

    def forgive(self) -> None:
        """Nobody had to wait: forget what was used so far."""
        self._used.clear()


class Turns(Generic[Item]):
    """Waiting items of links, by names. A link with too much waiting is not read from."""

    def __init__(self, reason: str, most: int, most_of_all: int) -> None:
        """`reason` is given to links that are not read from. At most `most` may wait from one link,
        in the unit of the sizes, and a quarter of `most_of_all` from one owner."""
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
        """The next item; IndexError if there is none."""
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
        """Give waiting items to `take`, at least one, until the clock is at `until`; then read
        again from links with little waiting."""
        before = time.monotonic()
        while self._count:
            link, name, item = self._take()
            take(link, item)
            now = time.monotonic()
            while now < until and self._waits_alone(link, name):
                take(link, self._take_alone(link, name))
                now = time.monotonic()
            self._charge(link, name, max(0.0, now - before - TURN))
            before = now
            if now >= until:
                break
        self.resume()

    def _waits_alone(self, link: Link, name: str) -> bool:
        """Is everything that waits of one name, and will some of it still wait after the next?
        Then it needs no turns, and its place in the lines stays as it is."""
        queue = self._queues.get(link, {}).get(name, ())
        return 1 < len(queue) == self._count

    def _take_alone(self, link: Link, name: str) -> Item:
        item, size = self._queues[link][name].popleft()
        self._count -= 1
        self._lighten(link, size)
        return item

    def charge_alone(self, link: Link, seconds: float) -> None:
        """Charge an item that was processed while nothing waited. Earlier time is forgotten, as it
        delayed nobody."""
        self._owners.forgive()
        self._owners.charge(link.owner, seconds)

    def _charge(self, link: Link, name: str, seconds: float) -> None:
        """Charge an owner, a link and a name: others of their kind go first until they used as
        much."""
        self._owners.charge(link.owner, seconds)
        if link.owner in self._links:
            self._links[link.owner].charge(link, seconds)
        if link in self._names:
            self._names[link].charge(name, seconds)

    def forget(self, link: Link) -> None:
        """Forget a closed link: its client repeats everything when it returns."""
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
        """Read again from links with little waiting."""
        for owner in [*self._paused]:
            if not self._has_much(owner, 2):
                for link in [*self._paused[owner]]:
                    if self._sizes[link] <= self._most // 2:
                        self._unpause(owner, link)
                        link.read(self._reason, on=True)

    def _has_much(self, owner: str, parts: int) -> bool:
        """Does an owner have more than `1 / parts` of what it may have? If too much waits in all,
        it may have an equal share, so owners with little do not wait for those with more."""
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
