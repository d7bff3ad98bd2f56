"""The judge of the time machine: which notifications must be delivered to whom, and whether they
were.

A notification that was acknowledged must come to whoever wants it, once, as it was. Where it does
not come, somebody must have said so:

    Break at the subscriber      whatever did not come up to the first that was published after it
    Lost at the subscriber       as many as it says
    Break at the publisher       the stamps that it names

A second time is a fault unless a Break came in between; a payload that is not the one that was
published, or that nobody wanted, always is one. Where no file was touched nothing of this is an
excuse, and even the words are faults.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterable
from zlib import crc32

from tidings.routing.clients.subscriber import Delivery, Lost
from tidings.routing.protocol.lineage import Break

_HEAD = struct.Struct("<8sQ")
_MAGIC = b"tm-said:"
EVER = 1 << 62

Wants = Callable[[int], bool]
INTERESTS: list[tuple[str, Wants]] = [
    ("n >= 0", lambda n: True),
    ("k < 60", lambda n: n % 100 < 60),
    ("k >= 30 AND k < 90", lambda n: 30 <= n % 100 < 90),
    ("n >= 0", lambda n: True),
]
"""Filters, and what each means for notification n."""
FOR_ALL = range(30, 60)  # what n % 100 is where everybody wants it


def payload_of(number: int, size: int) -> bytes:
    """Its identity, as many bytes as told, a checksum."""
    body = _HEAD.pack(_MAGIC, number) + random.Random(number).randbytes(size)
    return body + crc32(body).to_bytes(4, "little")


def read_payload(payload: bytes) -> int | None:
    """The number of a notification; None where it is not as it was published."""
    body, check = payload[:-4], payload[-4:]
    if len(body) < _HEAD.size or crc32(body) != int.from_bytes(check, "little"):
        return None
    magic, number = _HEAD.unpack_from(body)
    if magic != _MAGIC or payload != payload_of(number, len(body) - _HEAD.size):
        return None
    return int(number)


class Book:
    """What a publisher was promised, and what it was told of afterwards."""

    def __init__(self) -> None:
        self.said = 0  # the last number
        self.round_began = 0
        self.acknowledged: dict[int, int] = {}  # the stamp of each number
        self.refused = 0
        self.named: list[tuple[int, int]] = []  # stamps that are gone, both ends included
        self.breaks = 0

    def begin_round(self) -> None:
        self.round_began = self.said
        self.breaks = self.refused = 0
        self.named.clear()

    def due(self) -> list[int]:
        """What was acknowledged in this round."""
        return [number for number in self.acknowledged if number > self.round_began]

    def put_break(self, spans: Iterable[tuple[int, int]]) -> None:
        self.breaks += 1
        self.named += spans

    def is_named(self, number: int) -> bool:
        stamp = self.acknowledged[number]
        return any(first <= stamp <= last for first, last in self.named)


class Account:
    """What one subscriber got, from before the first notification on."""

    def __init__(self, name: str, wants: Wants, book: Book) -> None:
        self.name, self.wants, self.book = name, wants, book
        self._got: dict[int, int] = {}  # number: how many breaks there were when it came
        self.breaks = 0
        self._breaks_before = 0
        self._broken_at: int | None = None  # what was said when a break came, until it is over
        self._excused = 0  # numbers up to this did not come because of a break
        self.lost = self.told = 0
        self.faults: list[str] = []

    def begin_round(self) -> None:
        self._breaks_before = self.breaks
        self.lost = self.told = 0
        self.faults = []

    @property
    def new_breaks(self) -> int:
        return self.breaks - self._breaks_before

    def put(self, what: Delivery | Lost | Break) -> None:
        if isinstance(what, Lost):
            self.lost += what.numbers
        elif isinstance(what, Break):
            self.breaks += 1
            self._broken_at = self.book.said
            self._excused = EVER
        else:
            self._put_told(what.payload)

    def _put_told(self, payload: bytes) -> None:
        self.told += 1
        number = read_payload(payload)
        if number is None or not 0 < number <= self.book.said:
            self._fault(f"{self.name} got a payload that nobody published")
            return
        if not self.wants(number):
            self._fault(f"{self.name} got {number}, which it does not want")
        if self._got.get(number) == self.breaks:
            self._fault(f"{self.name} got {number} twice")
        self._got[number] = self.breaks
        if self._broken_at is not None and number > self._broken_at:
            self._broken_at, self._excused = None, number  # it is there again

    def _fault(self, text: str) -> None:
        if len(self.faults) < 5:
            self.faults.append(text)

    def has(self, number: int) -> bool:
        return number in self._got

    def missing(self) -> list[int]:
        """What was promised in this round and did not come, and was named nowhere; whether Lost
        tells of it is not counted yet."""
        return [
            number
            for number in self.book.due()
            if self.wants(number)
            and number not in self._got
            and number > self._excused
            and not self.book.is_named(number)
        ]

    def is_settled(self) -> bool:
        return self._broken_at is None and len(self.missing()) <= self.lost

    def judge(self, *, untouched: bool) -> list[str]:
        """The faults of this round."""
        missing = self.missing()
        found = list(self.faults)
        if len(missing) > self.lost:
            some = ", ".join(map(str, missing[:5]))
            found.append(
                f"{self.name} never got {len(missing)} that were acknowledged, {self.lost} of them "
                f"named as lost: {some} ..."
            )
        if untouched and (self.new_breaks or self.lost):
            found.append(
                f"{self.name} was told of {self.new_breaks} breaks and {self.lost} lost ones, "
                f"though nobody touched the files"
            )
        return found
