"""What waits, in turn: nobody's flood delays what others say.

    link edge ─┬─ writer   ▇             one of each link in turn,
               ├─ trudy    ▇▇▇▇▇▇▇▇▇▇    and of a link one of each name,
               └─ *        ▇▇▇▇          of a name in the order in which it came
    link evil ─┬─ writer   ▇▇▇▇▇▇
               └─ nobody   ▇▇

So however many names somebody says, they share what one link gets. Cost: O(1) to put and to take.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable
from typing import Generic, TypeVar

from tidings.network import Link

Item = TypeVar("Item")


class Turns(Generic[Item]):
    """Items of links, by names. Links are read from as long as not too much of theirs waits."""

    def __init__(self, reason: str, most: int, most_of_all: int) -> None:
        """`reason` is that for which a link is not read from; `most` is how much of what waits may
        be of one link, in the unit of the sizes."""
        self._reason = reason
        self._most, self._most_of_all = most, most_of_all
        self._queues: dict[Link, dict[str, deque[tuple[Item, int]]]] = {}
        self._turns: deque[Link] = deque()  # those with queues
        self._sizes: Counter[Link] = Counter()
        self._size = 0
        self._paused: set[Link] = set()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def put(self, link: Link, name: str, item: Item, size: int = 1) -> None:
        queues = self._queues.get(link)
        if queues is None:
            queues = self._queues[link] = {}
            self._turns.append(link)
        queues.setdefault(name, deque()).append((item, size))
        self._count += 1
        self._sizes[link] += size
        self._size += size
        if self._sizes[link] > self._most or self._size > self._most_of_all:
            self._paused.add(link)
            link.read(self._reason, on=False)

    def take(self) -> tuple[Link, Item]:
        """The next one; IndexError if there is none."""
        link = self._turns.popleft()
        queues = self._queues[link]
        name = next(iter(queues))
        queue = queues.pop(name)
        item, size = queue.popleft()
        if queue:
            queues[name] = queue  # behind the others
        if queues:
            self._turns.append(link)
        else:
            del self._queues[link]
        self._count -= 1
        self._lighten(link, size)
        return link, item

    def serve(self, take: Callable[[Link, Item], None], until: float) -> None:
        """Give what waits to `take`, at least one, as long as the clock is before `until`; then
        read again from those of whom little waits by now."""
        while self._count:
            take(*self.take())
            if time.monotonic() >= until:
                break
        self.resume()

    def forget(self, link: Link) -> None:
        """A link is over: whoever comes back says everything anew."""
        queues = self._queues.pop(link, None)
        if queues is not None:
            self._turns.remove(link)
            self._count -= sum(map(len, queues.values()))
            self._size -= self._sizes.pop(link)
        self._paused.discard(link)

    def resume(self) -> None:
        """Read again from those of whom little waits by now."""
        if self._paused and self._size <= self._most_of_all // 2:
            for link in [*self._paused]:
                if self._sizes[link] <= self._most // 2:
                    self._paused.remove(link)
                    link.read(self._reason, on=True)

    def _lighten(self, link: Link, size: int) -> None:
        self._size -= size
        self._sizes[link] -= size
        if not self._sizes[link]:
            del self._sizes[link]
