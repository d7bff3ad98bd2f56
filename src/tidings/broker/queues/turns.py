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
from collections import deque
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


class Waiting(Generic[Item]):
    """What waits of one link: the names in line, the items of each, and the size of all."""

    __slots__ = ("names", "queues", "size")

    def __init__(self) -> None:
        self.names: FairLine[str] = FairLine()
        self.queues: dict[str, deque[tuple[Item, int]]] = {}
        self.size = 0


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
        self._waiting: dict[Link, Waiting[Item]] = {}
        self._shares: dict[str, int] = {}  # the sizes of what waits, by owner
        self._size = 0
        self._paused: dict[str, set[Link]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def put(self, link: Link, name: str, item: Item, size: int = 1) -> None:
        owner = link.owner
        waiting = self._waiting.get(link)
        if waiting is None:
            waiting = self._waiting[link] = Waiting()
        queue = waiting.queues.get(name)
        if queue is None:
            queue = waiting.queues[name] = deque()
            self._wait(owner, link, waiting.names, name)
        queue.append((item, size))
        self._count += 1
        self._size += size
        waiting.size += size
        self._shares[owner] = self._shares.get(owner, 0) + size
        if waiting.size > self._most or self._has_much(owner, 1):
            self._paused.setdefault(owner, set()).add(link)
            link.read(self._reason, on=False)

    def _wait(self, owner: str, link: Link, names: FairLine[str], name: str) -> None:
        links = self._links.setdefault(owner, FairLine())
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
        waiting = self._waiting[link]
        name = waiting.names.pop()
        queue = waiting.queues[name]
        item, size = queue.popleft()
        self._count -= 1
        self._lighten(owner, waiting, size)
        self._charge(link, name, TURN)
        if queue:
            waiting.names.join(name)
        else:
            del waiting.queues[name]
        if waiting.queues:
            self._links[owner].join(link)
        else:
            del self._waiting[link]
        if self._links[owner]:
            self._owners.join(owner)
        else:
            del self._links[owner]
        return link, name, item

    def serve(self, take: Callable[[Link, Item], None], until: float) -> None:
        """Give waiting items to `take`, at least one, until the clock is at `until`; then read
        again from links with little waiting."""
        before = time.monotonic()
        while self._count:
            link, name, item = self._take()
            take(link, item)
            now = self._serve_alone(take, link, name, until)
            self._charge(link, name, max(0.0, now - before - TURN))
            before = now
            if now >= until:
                break
        self.resume()

    def _serve_alone(
        self, take: Callable[[Link, Item], None], link: Link, name: str, until: float
    ) -> float:
        """While everything that waits is of one name, serve it without turns; return the time. One
        item is left, so that the place of the name in the lines stays as it is."""
        now = time.monotonic()
        waiting = self._waiting.get(link)
        queue = None if waiting is None else waiting.queues.get(name)
        if waiting is None or queue is None:
            return now
        while now < until and 1 < len(queue) == self._count:
            item, size = queue.popleft()
            self._count -= 1
            self._lighten(link.owner, waiting, size)
            take(link, item)
            now = time.monotonic()
        return now

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
        if link in self._waiting:
            self._waiting[link].names.charge(name, seconds)

    def forget(self, link: Link) -> None:
        """Forget a closed link: its client repeats everything when it returns."""
        owner = link.owner
        waiting = self._waiting.pop(link, None)
        if waiting is not None:
            self._lighten(owner, waiting, waiting.size)
            for queue in waiting.queues.values():
                self._count -= len(queue)
                queue.clear()  # one of them may be served right now
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
                    waiting = self._waiting.get(link)
                    if waiting is None or waiting.size <= self._most // 2:
                        self._unpause(owner, link)
                        link.read(self._reason, on=True)

    def _has_much(self, owner: str, parts: int) -> bool:
        """Does an owner have more than `1 / parts` of what it may have? If too much waits in all,
        it may have an equal share, so owners with little do not wait for those with more."""
        share = self._shares.get(owner, 0) * parts
        if share > self._most_of_owner:
            return True
        if self._size * parts <= self._most_of_all:
            return False
        return share > self._most_of_all // max(1, len(self._shares))

    def _unpause(self, owner: str, link: Link) -> None:
        links = self._paused.get(owner, set())
        links.discard(link)
        if not links:
            self._paused.pop(owner, None)

    def _lighten(self, owner: str, waiting: Waiting[Item], size: int) -> None:
        self._size -= size
        waiting.size -= size
        rest = self._shares[owner] - size
        if rest:
            self._shares[owner] = rest
        else:
            del self._shares[owner]
