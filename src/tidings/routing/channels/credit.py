"""Credit: how much data of each channel may be in flight on a link, so that a slow channel does not
delay the others.

    sender                                                  receiver
    sent 900 kB of channel 2  ──────── frames ────────>     900 kB came, 600 kB of them are held
    may have sent 2,397 kB    <── Credit {2: 2,397,152} ──  300 kB are done, plus WINDOW

Both ends count the bytes of all frames of a channel since the link began. The receiver says up to
which count the sender may send; it does not raise this limit for frames that it can't pass on yet.
Limits only grow, so a Credit that arrives late or twice does no harm.

Only messages that can be large wait for credit: publications and parts on the way up, notifications
on the way down. On the way up, all other messages overtake those that wait, because nothing depends
on their order. On the way down, all messages of a channel stay in order: a beat that arrived before
the notifications that it counts would look like a loss.

The queues are bounded. Waiting publications may take WINDOW bytes for each neighbour and channel,
which is the credit that was given for them, and MOST_HELD bytes at the whole node. Further
publications are dropped, and publishers repeat those that are not acknowledged. Waiting
notifications may take `most` bytes on a link, in equal shares for the channels that wait. When a
channel has used its share, further notifications are dropped, and a `Skipped` tells the other end
to ask for them again. Consecutive beats that wait are merged. All other messages are answers to the
other end; if too many answers wait, the link is closed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import msgspec

from tidings.routing.protocol import messages as m

WINDOW = 2 << 20  # bytes of one channel that may be in flight, or held, on one link
MOST_WAITING = 32 << 20  # bytes of notifications that wait on one link
STUCK = 2  # in multiples of `most`: if more bytes of one channel wait, the link is closed
OVERDRAWN = 4  # beyond this many windows of held publications, a neighbour's link is not read
MOST_HELD = 64 << 20  # bytes of publications that wait at one node
_SMALL = 256  # bytes that are counted for a message without content

HEAVY_UP = m.Publish | m.HandOver
HEAVY_DOWN = m.Notification | m.Recovered


class Frames(NamedTuple):
    """Encoded frames of notifications."""

    data: bytes
    many: int


Item = m.Message | Frames


def weigh(item: Item) -> int:
    """About how many bytes a message takes; the message is not encoded to find out."""
    if isinstance(item, Frames):
        return len(item.data)
    if isinstance(item, m.Publish):
        return _SMALL + len(item.content) + len(item.payload)
    if isinstance(item, m.HandOver):
        return _SMALL + item.size
    if isinstance(item, m.Notification):
        return _SMALL + len(item.payload)
    if isinstance(item, m.Recovered):
        return _SMALL + sum(map(weigh, item.notifications))
    return _SMALL


class WaitingFrames(NamedTuple):
    """A message that waits for credit; `source` is the link and the channel from which it came."""

    item: Item
    size: int
    source: tuple[Flow, int] | None


class Flow:
    """One end of a link: how much it may send in each channel, and how much the other end may
    send."""

    __slots__ = (
        "_may", "_queues", "_sent", "_sizes", "_taken", "_told", "held", "is_blocked", "most",
        "window",
    )  # fmt: skip

    def __init__(
        self,
        taken: Mapping[int, int] | None = None,
        sent: Mapping[int, int] | None = None,
        *,
        is_lower: bool = False,
        window: int = WINDOW,
        most: int = MOST_WAITING,
    ) -> None:
        """`taken` and `sent` are the bytes of the frames that were received and sent, by channel;
        the link keeps them up to date. The lower end of a link waits for credit in channel 0 from
        the beginning; the upper end only after the first Credit for channel 0, because some clients
        send none."""
        self._taken = {} if taken is None else taken
        self._sent = {} if sent is None else sent
        self.window = window
        self.most = most
        self._may: dict[int, int] = {0: window} if is_lower else {}
        self._told: dict[int, int] = {}
        self._queues: dict[int, deque[WaitingFrames]] = {}
        self._sizes: dict[int, int] = {}
        self.held: dict[int, int] = {}
        """Bytes that came over this link and wait for credit on another link, by channel."""
        self.is_blocked = False
        """Whether the connection itself accepts no more data at present."""

    # -- the receiver --------------------------------------------------------------------------

    def raise_limit(self, number: int, unread: int = 0) -> int | None:
        """The limit to tell the other end, or None while it would rise by less than half a window.
        `unread` is how many bytes have arrived and wait elsewhere."""
        limit = self._taken.get(number, 0) - self.held.get(number, 0) - unread + self.window
        if limit - self._told.get(number, self.window) < self.window // 2:
            return None
        self._told[number] = limit
        return limit

    def release(self, number: int, size: int) -> None:
        """Record that held frames of this size were passed on."""
        left = self.held.get(number, 0) - size
        if left > 0:
            self.held[number] = left
        else:
            self.held.pop(number, None)

    # -- the sender ----------------------------------------------------------------------------

    def room(self, number: int) -> int:
        """How many more bytes may be sent in a channel."""
        if self.is_blocked:
            return 0
        limit = self._may.get(number, self.window if number else None)
        return self.window if limit is None else max(0, limit - self._sent.get(number, 0))

    def passes(self, number: int) -> bool:
        """Can large messages of a channel be sent now?"""
        return number not in self._queues and bool(self.room(number))

    def fits(self, number: int, items: Iterable[Item]) -> bool:
        """Can all of these messages of a channel be sent now?"""
        return number not in self._queues and sum(map(weigh, items)) <= self.room(number)

    def waits(self, number: int) -> bool:
        """Do any messages of a channel wait?"""
        return number in self._queues

    def waiting(self, number: int) -> int:
        """About how many bytes of a channel wait."""
        return self._sizes.get(number, 0)

    def is_full(self, number: int) -> bool:
        """Do so many notifications of a channel wait that further notifications are dropped?"""
        return self.waiting(number) * len(self._queues) > self.most

    @property
    def is_stuck(self) -> bool:
        """Does so much data wait that the other end must be gone, or does not read the answers?"""
        return any(size > STUCK * self.most for size in self._sizes.values())

    @property
    def is_overdrawn(self) -> bool:
        """Did the other end send much more than it had credit for?"""
        return any(held > OVERDRAWN * self.window for held in self.held.values())

    @property
    def numbers(self) -> list[int]:
        """The channels in which messages wait."""
        return [*self._queues]

    def put(self, number: int, item: Item, source: tuple[Flow, int] | None = None) -> None:
        """Let a message wait for credit. `source` is the link and channel from which it came."""
        if isinstance(item, m.Beat):
            item = self._join_beats(number, item)
        size = weigh(item)
        self._queues.setdefault(number, deque()).append(WaitingFrames(item, size, source))
        self._sizes[number] = self._sizes.get(number, 0) + size
        if source is not None:
            flow, of = source
            flow.held[of] = flow.held.get(of, 0) + size

    def skip(self, number: int) -> None:
        """Append a note that notifications of a channel were dropped. If a beat is last in the
        queue, it is moved behind this note."""
        beat = self._take_last_beat(number)
        queue = self._queues.get(number)
        if not queue or not isinstance(queue[-1].item, m.Skipped):
            self.put(number, m.Skipped())
        if beat is not None:
            self.put(number, beat)

    def _join_beats(self, number: int, beat: m.Beat) -> m.Beat:
        """Merge a beat with the one before it, if that one still waits."""
        before = self._take_last_beat(number)
        if before is None or before.epoch != beat.epoch:
            return beat
        return msgspec.structs.replace(beat, totals={**before.totals, **beat.totals})

    def _take_last_beat(self, number: int) -> m.Beat | None:
        """Take out the last message of the queue, if it is a beat."""
        queue = self._queues.get(number)
        if not queue or not isinstance(queue[-1].item, m.Beat):
            return None
        waiting = queue.pop()
        self._release(number, waiting)
        return waiting.item if isinstance(waiting.item, m.Beat) else None

    def take(self, message: m.Credit) -> None:
        """Raise the limits of some channels, as the other end allows."""
        for number, limit in message.upto.items():
            self._may[number] = max(limit, self._may.get(number, 0))

    def draw(self, number: int, heavy: object) -> Iterator[Item]:
        """Take out the messages that can be sent now. Messages that are not `heavy` need no credit.
        Sizes are estimated here, so there may be room for more messages after these were sent. Then
        call `draw` again: otherwise, the rest may wait for a Credit that never comes."""
        queue, room = self._queues.get(number), self.room(number)
        while queue:
            waiting = queue[0]
            if not room and isinstance(waiting.item, (heavy, Frames)):  # type: ignore[arg-type]
                return
            queue.popleft()
            self._release(number, waiting)
            room = max(0, room - waiting.size)
            if not queue:
                self._queues.pop(number, None)
            yield waiting.item

    def forget(self, number: int) -> None:
        """Drop the waiting messages and the limits of a channel that was closed."""
        for waiting in self._queues.pop(number, ()):
            self._release(number, waiting)
        self._may.pop(number, None)
        self._told.pop(number, None)

    def _release(self, number: int, waiting: WaitingFrames) -> None:
        left = self._sizes.get(number, 0) - waiting.size
        if left > 0:
            self._sizes[number] = left
        else:
            self._sizes.pop(number, None)
        if waiting.source is not None:
            flow, of = waiting.source
            flow.release(of, waiting.size)

    def end(self) -> None:
        """Drop all waiting messages, because the link has ended."""
        for number in self.numbers:
            self.forget(number)
