"""Pulses: one message repeats the last message of every channel of a link.

    channel 1  Beat ── the same ── the same ── another Beat       sent: the first and the last
    channel 2  Beat ── the same ── the same ── the same           sent: the first
                          Pulse       Pulse       Pulse           one for both, with a digest

Most channels are idle most of the time, and repeat the same message in each beat. Both ends of a
link keep the last message, so it need not be sent again. The digest in a pulse shows whether both
ends keep the same messages; if not, all of them are sent again. Links keep the order of messages,
so the digests differ only if a number was closed meanwhile, or because of a bug.
"""

from __future__ import annotations

from hashlib import blake2b

import msgspec

from tidings.routing.protocol import messages as m

Said = m.Beat | m.Resubscribe
MOST_AMISS = 2  # after this many pulses in a row with a wrong digest, all messages are sent again


def is_repeat(before: Said | None, after: Said) -> bool:
    """Does a message only repeat the message before it? A beat without a digest of edges counts as
    a repetition of a beat with one."""
    if isinstance(before, m.Beat) and isinstance(after, m.Beat):
        if after.totals or (after.edges is not None and after.edges != before.edges):
            return False
        return _state_of(before) == _state_of(after)
    return before == after


def _state_of(beat: m.Beat) -> tuple[object, ...]:
    return beat.epoch, beat.serial, beat.subscribed, beat.sum, beat.seen, beat.behind


class _Latest:
    """The last message of each channel, with a digest that is updated with each change."""

    def __init__(self) -> None:
        self.said: dict[int, Said] = {}
        self.mixed = 0

    def put(self, number: int, message: Said) -> None:
        self.remove(number)
        self.said[number] = message
        self.mixed ^= _mix(number, message)

    def remove(self, number: int) -> bool:
        """Forget a channel; return False if there was no message in it."""
        before = self.said.pop(number, None)
        if before is None:
            return False
        self.mixed ^= _mix(number, before)
        return True


class Repeats(_Latest):
    """The sending end of a link: its last message in each channel."""

    def __init__(self) -> None:
        super().__init__()
        self._gone: list[int] = []

    def is_news(self, number: int, message: Said) -> bool:
        """Must a message be sent? Not if it only repeats the last one of its channel: then pulses
        stand for it."""
        if is_repeat(self.said.get(number), message):
            return False
        self.put(number, message)
        return True

    def leave_out(self, number: int) -> None:
        """Stop repeating the last message of a channel, and tell the other end."""
        if self.remove(number):
            self._gone.append(number)

    def pulse(self, *, even_empty: bool = False) -> m.Pulse | None:
        """The next pulse; None if there is nothing to repeat and `even_empty` is false."""
        if not self.said and not self._gone and not even_empty:
            return None
        gone, self._gone = tuple(self._gone), []
        return m.Pulse(len(self.said), self.mixed, gone)


class ReceivedMessages(_Latest):
    """The receiving end of a link: the last message of the other end in each channel."""

    def __init__(self) -> None:
        super().__init__()
        self._amiss = 0
        self.at = float("-inf")
        """When the last pulse came that repeats the messages that are kept here."""

    def take(self, pulse: m.Pulse, now: float) -> bool:
        """Process a pulse; return True if the other end must send all messages again."""
        for number in pulse.gone:
            self.remove(number)
        if (pulse.size, pulse.mixed) == (len(self.said), self.mixed):
            self._amiss, self.at = 0, now
            return False
        self._amiss += 1
        if self._amiss < MOST_AMISS:
            return False
        self._amiss = 0
        self.said.clear()
        self.mixed = 0
        return True


def _mix(number: int, message: Said) -> int:
    """A hash of 63 bits of a channel's number and its last message."""
    data = number.to_bytes(4, "little") + msgspec.msgpack.encode(message)
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "little") >> 1
