"""Fair queues, in which a sender of many messages does not delay those of others.

    edge ──── link edge ─┬─ writer   ▇             owners take turns,
                         ├─ trudy    ▇▇▇▇▇▇▇▇▇▇    then the links of an owner,
                         └─ *        ▇▇▇▇          then the names of a link;
    guests ─┬ link g1 ──── g1        ▇▇▇           the items of a name stay in order
            └ link g2 ──── g2        ▇▇▇▇▇▇▇▇▇

The owner of an item is a bound name or a guest token. All links and names of an owner share the
owner's turns. A long turn counts as several, for the owner, the link and the name. Each step takes
time logarithmic in the number of waiting keys.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Hashable, Iterator
from heapq import heappop, heappush
from typing import Generic, TypeVar

from tidings.broker.links import Lane

TURN = 0.0001  # seconds; at least this much is charged for a turn
REST_BEHIND = 6.0  # while publications are behind, other work pauses this many times its duration
MOST_USED = 10_000  # the most keys whose used time is remembered

Item = TypeVar("Item")
Key = TypeVar("Key", bound=Hashable)


class FairLine(Generic[Key]):
    """A line of keys: the next key to be served is the one that has used the least time. A key that
    joins the line starts with as much used time as the key served last, or with its own recorded
    time if that is more."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Key]] = []  # seconds used, number of the turn, key
        self._turns: dict[Key, int] = {}  # the number of each key's current turn
        self._used: dict[Key, float] = {}  # seconds
        self._clock = 0.0  # the seconds that the key served last had used before its turn
        self._number = 0

    def __len__(self) -> int:
        return len(self._turns)

    def __contains__(self, key: Key) -> bool:
        return key in self._turns

    def join(self, key: Key) -> None:
        """Put a key into the line, behind all keys that have used as much time or less."""
        self._number += 1
        self._turns[key] = self._number
        heappush(self._heap, (max(self._clock, self._used.get(key, 0.0)), self._number, key))

    def leave(self, key: Key) -> None:
        self._turns.pop(key, None)

    def pop(self) -> Key:
        """Remove and return the next key; raise IndexError if there is none."""
        while True:
            used, number, key = heappop(self._heap)
            if self._turns.get(key) != number:
                continue  # the key has left
            if self._used.get(key, 0.0) > used:  # the key was charged after it joined
                self.join(key)
                continue
            self._clock = used
            del self._turns[key]
            return key

    def charge(self, key: Key, seconds: float) -> None:
        self._used[key] = max(self._used.get(key, 0.0), self._clock) + seconds
        if len(self._used) > MOST_USED:  # forget keys whose used time no longer matters
            self._used = {one: used for one, used in self._used.items() if used > self._clock}

    def forgive(self) -> None:
        """Forget how much time each key has used, because nobody had to wait."""
        self._used.clear()


class Waiting(Generic[Item]):
    """The waiting items of one link: the line of names, the items of each, and the total size."""

    __slots__ = ("names", "queues", "size")

    def __init__(self) -> None:
        self.names: FairLine[str] = FairLine()
        self.queues: dict[str, deque[tuple[Item, int]]] = {}
        self.size = 0


class Turns(Generic[Item]):
    """Waiting items, by link and name. Reading from a link with too many items is paused."""

    def __init__(self, reason: str, most: int, most_of_all: int) -> None:
        """`reason` is passed to links when reading from them is paused. The waiting items of a link
        may have a total size of `most`, and those of an owner a quarter of `most_of_all`, or `most`
        if that is more."""
        self._reason = reason
        self._most, self._most_of_all = most, most_of_all
        self._most_of_owner = max(most, most_of_all // 4)
        self._owners: FairLine[str] = FairLine()
        self._links: dict[str, FairLine[Lane]] = {}  # of each owner
        self._waiting: dict[Lane, Waiting[Item]] = {}
        self._shares: dict[str, int] = {}  # the total size of the waiting items, by owner
        self._size = 0
        self._paused: dict[str, set[Lane]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def size_of(self, link: Lane) -> int:
        """The total size of the waiting items of a link."""
        waiting = self._waiting.get(link)
        return 0 if waiting is None else waiting.size

    def put(self, link: Lane, name: str, item: Item, size: int = 1) -> None:
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

    def put_first(self, link: Lane, name: str, item: Item, size: int = 1) -> None:
        """Put back the unfinished rest of an item. The rest goes to the head of its name's queue,
        and waits for the name's next turn."""
        self.put(link, name, item, size)
        queue = self._waiting[link].queues[name]
        queue.rotate(1)

    def take_more(self, link: Lane, name: str, fits: Callable[[Item], bool]) -> Iterator[Item]:
        """Take the next items of a name as long as `fits` accepts them, even out of turn."""
        waiting = self._waiting.get(link)
        queue = None if waiting is None else waiting.queues.get(name)
        while waiting is not None and queue and fits(queue[0][0]):
            item, size = queue.popleft()
            self._count -= 1
            self._lighten(link.owner, waiting, size)
            if not queue:
                self._leave(link, waiting, name)
            yield item

    def _leave(self, link: Lane, waiting: Waiting[Item], name: str) -> None:
        """Remove a name from its lines, because it has no more items."""
        owner = link.owner
        del waiting.queues[name]
        waiting.names.leave(name)
        if not waiting.queues:
            del self._waiting[link]
            self._links[owner].leave(link)
            if not self._links[owner]:
                del self._links[owner]
                self._owners.leave(owner)

    def _wait(self, owner: str, link: Lane, names: FairLine[str], name: str) -> None:
        links = self._links.setdefault(owner, FairLine())
        names.join(name)
        if link not in links:
            links.join(link)
        if owner not in self._owners:
            self._owners.join(owner)

    def take(self) -> tuple[Lane, Item]:
        """The next item; raises IndexError if there is none."""
        link, _, item = self._take()
        return link, item

    def _take(self) -> tuple[Lane, str, Item]:
        owner = self._owners.pop()
        link = self._links[owner].pop()
        waiting = self._waiting[link]
        name = waiting.names.pop()
        queue = waiting.queues[name]
        item, size = queue.popleft()
        self._count -= 1
        self._lighten(owner, waiting, size)
        self.charge(link, name, TURN)
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

    def serve(self, take: Callable[[Lane, Item], None], until: float) -> None:
        """Pass at least one waiting item to `take`, and more until the clock reaches `until`. Then
        resume reading from links with few waiting items."""
        before = time.monotonic()
        while self._count:
            link, name, item = self._take()
            take(link, item)
            now = self._serve_alone(take, link, name, until)
            self.charge(link, name, max(0.0, now - before - TURN))
            before = now
            if now >= until:
                break
        self.resume()

    def _serve_alone(
        self, take: Callable[[Lane, Item], None], link: Lane, name: str, until: float
    ) -> float:
        """While all waiting items have the same name, serve them without turns; return the current
        time. The last item stays in the queue, so that the name keeps its place in the lines."""
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

    def charge_alone(self, link: Lane, seconds: float) -> None:
        """Charge for an item that was processed while nothing waited. Earlier charges are
        forgotten, because they delayed nobody."""
        self._owners.forgive()
        self._owners.charge(link.owner, seconds)

    def charge(self, link: Lane, name: str, seconds: float) -> None:
        """Charge time to an owner, a link and a name. Other keys then go first until they have used
        as much time."""
        self._owners.charge(link.owner, seconds)
        if link.owner in self._links:
            self._links[link.owner].charge(link, seconds)
        if link in self._waiting:
            self._waiting[link].names.charge(name, seconds)

    def forget(self, link: Lane) -> None:
        """Drop the items of a closed link. The client at the other end repeats everything when it
        reconnects."""
        owner = link.owner
        waiting = self._waiting.pop(link, None)
        if waiting is not None:
            self._lighten(owner, waiting, waiting.size)
            for queue in waiting.queues.values():
                self._count -= len(queue)
                queue.clear()  # `_serve_alone` may still use this queue
            self._links[owner].leave(link)
            if not self._links[owner]:
                del self._links[owner]
                self._owners.leave(owner)
        self._unpause(owner, link)

    def resume(self) -> None:
        """Resume reading from links with few waiting items."""
        for owner in [*self._paused]:
            if not self._has_much(owner, 2):
                for link in [*self._paused[owner]]:
                    waiting = self._waiting.get(link)
                    if waiting is None or waiting.size <= self._most // 2:
                        self._unpause(owner, link)
                        link.read(self._reason, on=True)

    def _has_much(self, owner: str, parts: int) -> bool:
        """Do the waiting items of an owner take more than `1 / parts` of the owner's limit? If the
        queues of all owners together are too long, each owner's limit is an equal share, so that
        only owners above this share are paused."""
        share = self._shares.get(owner, 0) * parts
        if share > self._most_of_owner:
            return True
        if self._size * parts <= self._most_of_all:
            return False
        return share > self._most_of_all // max(1, len(self._shares))

    def _unpause(self, owner: str, link: Lane) -> None:
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
