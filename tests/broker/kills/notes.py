"""What is published, and which subscribers must receive it, computed without tidings."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable

import msgspec

_PAYLOAD = struct.Struct("<Bq")
LONG = 250  # bytes of a payload that is published in pieces

Interest = tuple[str, Callable[[int, int], bool]]
"""A filter, and what it means for notification n of a publisher."""

APART = 8  # from the number of a publisher in one channel to its number in the next


def between(low: int, width: int) -> Interest:
    """The filter of a visitor."""
    return f"k >= {low} AND k < {low + width}", lambda _, n: low <= n % 100 < low + width


KEPT: list[Interest] = [
    ("n >= 0", lambda _, n: True),
    ("k >= 20 AND k < 60", lambda _, n: 20 <= n % 100 < 60),
    ("k >= 40 AND k < 90", lambda _, n: 40 <= n % 100 < 90),
    ("p = 1", lambda p, _: p == 1),
    ("p = 0 AND k >= 50", lambda p, n: p == 0 and n % 100 >= 50),
    ("k = 7 OR k = 77", lambda _, n: n % 100 in (7, 77)),
    ("n >= 0", lambda _, n: True),
    ("k < 3", lambda _, n: n % 100 < 3),
]
"""Of subscriptions that stay."""
NAMED = between(30, 40)
"""Of named subscriptions, whose readers come and go."""


def attributes_of(publisher: int, number: int) -> dict[str, int]:
    """The same in each channel, so that what strays from one to another is wanted there."""
    return {"p": publisher % APART, "n": number, "k": number % 100}


def in_channel(interest: Interest, which: int, channels: int) -> Interest:
    """What a filter means in one of several channels."""
    text, wants = interest
    if channels == 1:
        return interest
    return text, lambda p, n: p // APART == which and wants(p % APART, n)


def payload_of(publisher: int, number: int) -> bytes:
    """Some are long."""
    short = _PAYLOAD.pack(publisher, number)
    return short if number % 5 != 3 else (short * LONG)[:LONG]


def read_payload(payload: bytes) -> tuple[int, int]:
    publisher, number = _PAYLOAD.unpack_from(payload)
    assert payload == payload_of(publisher, number), "a payload was altered, or is not whole"
    return publisher, number


class Verdict(msgspec.Struct):
    """Of one subscription: all numbers but `told` must be 0."""

    interest: str
    told: int = 0
    missing: int = 0
    twice: int = 0
    strays: int = 0  # that it did not want
    lost: int = 0
    breaks: int = 0
    examples: list[str] = []

    @property
    def right(self) -> bool:
        return not (self.missing or self.twice or self.strays or self.lost or self.breaks)


class Ledger:
    """What one subscription was told, and whether that is right."""

    def __init__(self, interest: Interest) -> None:
        self.text, self.wants = interest
        self.verdict = Verdict(self.text, examples=[])
        self._seen: dict[int, bytearray] = {}

    def put(self, payload: bytes) -> None:
        publisher, number = read_payload(payload)
        seen = self._seen.setdefault(publisher, bytearray())
        if number >= len(seen):
            seen.extend(bytes(number + 4096 - len(seen)))
        self.verdict.told += 1
        if seen[number]:
            self.verdict.twice += 1
            self._remark(f"twice {publisher}:{number}")
        elif not self.wants(publisher, number):
            self.verdict.strays += 1
            self._remark(f"stray {publisher}:{number}")
        seen[number] = 1

    def _forget(self, told: Iterable[tuple[int, int]]) -> None:
        for publisher, number in told:
            self._seen[publisher][number] = 0

    def has(self, publisher: int, number: int) -> bool:
        seen = self._seen.get(publisher, b"")
        return number < len(seen) and bool(seen[number])

    def missing(self, after: dict[int, int], upto: dict[int, int]) -> list[tuple[int, int]]:
        """What was due and did not come: of each publisher, those after a number up to another."""
        return [
            (publisher, number)
            for publisher, last in upto.items()
            for number in range(after.get(publisher, 0) + 1, last + 1)
            if self.wants(publisher, number) and not self.has(publisher, number)
        ]

    def conclude(self, missing: list[tuple[int, int]]) -> Verdict:
        self.verdict.missing = len(missing)
        for publisher, number in missing[:5]:
            self._remark(f"missing {publisher}:{number}")
        return self.verdict

    def _remark(self, text: str) -> None:
        if len(self.verdict.examples) < 10:
            self.verdict.examples.append(text)


class NamedLedger(Ledger):
    """What a named subscription was told in all its stays: what is not confirmed may come again in
    the next one."""

    def __init__(self, interest: Interest) -> None:
        super().__init__(interest)
        self.verdict.interest = f"named: {self.text}"
        self._confirmed: set[tuple[int, int]] = set()
        self._stay: list[tuple[int, int]] = []

    def begin_stay(self) -> None:
        """Expect again what was told and not confirmed."""
        self._forget(set(self._stay) - self._confirmed)
        self._stay = []

    def put(self, payload: bytes) -> None:
        super().put(payload)
        self._stay.append(read_payload(payload))

    def confirm(self, many: int) -> None:
        """The first ones of this stay are confirmed, and that is on the disk."""
        self._confirmed.update(self._stay[:many])

    @property
    def told(self) -> int:
        """How many this stay was told."""
        return len(self._stay)
