"""Channels for tests that compare publications in runs with the same publications one by one: their
attributes, filters and notifications."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec
from tests.channel.test_interests import WORDS, random_filter

from tidings.filters import Attributes
from tidings.model import Extra

PLAIN = [
    "n > 2", "n <= 5", "n IN (1, 4)", "word = 'a'", "word = 'ab' AND n > 1", "n > 2 AND n < 6",
    "word LIKE 'a%'", "x > 0.5", "x > 0.5 AND n > 2", "flag", "n > 0 OR word = 'c'",
]  # fmt: skip
COMPUTING = [
    "length(word) > 1", "n % 3 = 1", "n % 7 = 3 AND flag", "x * 2 > 1.5", "upper(word) = 'AB'",
    "cast(n AS string) = '3'", "n + x > 3", "coalesce(n, 4) % 2 = 0", "x / n > 0.5 OR word = 'b'",
    "word RLIKE 'a.?$'",
]  # fmt: skip
NUMBER_TEXTS = ["cast(x AS string) = '3'", "length(cast(x AS string)) > 1"]
TYPED = [
    "day > DATE '2024-01-01'", "day = DATE '2024-01-01'", "at < TIMESTAMP '2024-05-01 12:00:00'",
    "at = TIMESTAMP '2024-01-01 00:00:00'", "year(day) = 2024", "hour(at) > 10", "x = 1",
]  # fmt: skip
UNDECLARED = ["other = 1", "more LIKE 'y%'"]
NESTED = [
    "array_contains(tags, 'a')", "user.city = 'a'", "user.age > 2", "counts['a'] = 1",
    "size(tags) > 1", "user.city = 'b' AND n > 2", "user.city IS NULL",
    "array_contains(coalesce(tags, ints), 'a')", "array_contains(ints, 2)",
]  # fmt: skip
PRICES = ["price = 1.1", "price > 0.25", "price * 2 = 2.2", "price div 1 = 1", "price = 10"]
ODD = [b"", b"{", b"[]", b"3", b'{"n": 1,}', b'{"n": "\xff"}', b"null", b'{"n": 1, "n": "x"}',
       b'{"n": 01}', b'{"word": "\\ud800"}', b' {"n": 5} ', b"{}", b'\xef\xbb\xbf{"n": 5}',
       b"<n><word>a</word></n>", b'{"more": {"a": 1}, "more": "\xff"}', b'{"n": NaN}',
       b'{"word": "\xff", "word": "a"}', b'{"n": 1, "n": 3}', b'{"n": 3, "a\\"b": 1}',
       b'{"n": 3, "a\\\\b": "x"}', b'{"n": 3, "\\u0001": 1}']  # fmt: skip
SCALARS = {"n": "integer", "word": "string", "x": "double", "flag": "boolean"}
PLAIN_TYPES = SCALARS | {"day": "date", "at": "timestamp"}
ALL_TYPES = PLAIN_TYPES | {
    "tags": "list<string>",
    "ints": "list<integer>",
    "user": "struct<city: string, age: integer>",
    "counts": "map<string, integer>",
}
ONE_BY_ONE: dict[str, dict[str, str]] = {  # types that have no columns
    "decimals": {"price": "decimal(10, 2)"},
    "maps": {"counts": "map<integer, integer>"},
    "open structs": {"user": "struct<city: string, ...>"},
}
ONE_BY_ONE_TEXTS = {
    "decimals": PRICES,
    "maps": ["counts.`1` = 1", "counts.`7` = 1"],
    "open structs": ["user.name = 'x'", "user.age = 4"],
}
EXTRAS: list[Extra] = ["open", "keep", "drop", "refuse"]
DOUBLES = [0.25, 0.75, 1, 3, 3.5, 3.0]
DAYS = ["2024-01-01", "2023-12-31", "2024-5-1", "2024-02-30", "yesterday", 7]
TIMES = ["2024-01-01T00:00:00Z", "2024-05-01 12:00:00.5", "2024-06-01T10:00:00+02:00", "2024-01-02"]
PRICE = [1.1, "1.10", 1, 1.0, 0.25, "1_0", 12345678.9, 1.123, 10**17, "x", 0.1234567890123456789]

Content = Callable[[random.Random], bytes]


class Case(NamedTuple):
    """A channel: the types that it declares, if any, its filters and its notifications."""

    types: dict[str, str] | None
    extra: Extra
    texts: Sequence[str]
    content: Content

    @property
    def attributes(self) -> Attributes | None:
        return None if self.types is None else Attributes(self.types, extra=self.extra)


def random_content(chance: random.Random) -> bytes:
    """Mostly the same attributes of the same types; some doubles are written as whole numbers."""
    return encode(chance, scalars(chance), strange=0.02)


def double_content(chance: random.Random) -> bytes:
    """No double is written as a whole number."""
    return encode(chance, scalars(chance, doubles=[0.25, 0.75, 1.0, 3.0, 3.5]), strange=0.02)


def scalars(chance: random.Random, doubles: Sequence[float] = DOUBLES) -> dict[str, object]:
    event: dict[str, object] = {"n": chance.randrange(-1, 9)}
    if chance.random() < 0.8:
        event["word"] = chance.choice(WORDS)
    if chance.random() < 0.5:
        event["x"] = chance.choice(doubles)
    if chance.random() < 0.5:
        event["flag"] = chance.random() < 0.5
    odd = chance.random()
    if odd < 0.02 and doubles is not DOUBLES:
        event["n"] = chance.choice(["3", None, [3], {"n": 3}, True, 2**70, 2**53 + 1, -(2**63)])
    elif odd < 0.02:
        event["n"] = chance.choice(
            ["3", 2.5, 3.0, None, [3], {"n": 3}, True, 2**70, 2**53 + 1, -(2**63)]
        )
    elif odd < 0.04:
        event[chance.choice(["other", "more", "a.b", "é"])] = chance.choice([1, "x", None, [1]])
    elif odd < 0.05:
        event["x"] = chance.choice([*doubles[:1], 1e300, "0.75", "NaN", None])
        if doubles is DOUBLES and chance.random() < 0.2:
            event["x"] = 2**53 + 1
    elif odd < 0.06:
        event["word"] = chance.choice(["x" * 400, "\n", "ä", None, 3])
    return event


def encode(chance: random.Random, event: dict[str, object], strange: float) -> bytes:
    drawn = chance.random()
    if drawn < strange / 2:
        return chance.choice(ODD)
    if drawn < strange and event["n"] != 2**70:  # MessagePack has no such number
        return msgspec.msgpack.encode(event)
    return msgspec.json.encode(event)


def typed_content(chance: random.Random) -> bytes:
    event = scalars(chance)
    if chance.random() < 0.7:
        event["day"] = chance.choice(DAYS if chance.random() < 0.03 else DAYS[:2])
    if chance.random() < 0.7:
        event["at"] = chance.choice(TIMES if chance.random() < 0.03 else TIMES[:2])
    if chance.random() < 0.005:
        event["at"] = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    return encode(chance, event, strange=0.02)


def extra_content(chance: random.Random) -> bytes:
    """Often with attributes that are not declared."""
    event = scalars(chance)
    if chance.random() < 0.6:
        event["other"] = chance.choice([1, 2, None])
    if chance.random() < 0.6:
        event["more"] = chance.choice([[1], "x", {"a": None}]) if chance.random() < 0.1 else "y"
    return encode(chance, event, strange=0.02)


def nested_content(chance: random.Random, *, with_price: bool = False) -> bytes:
    event = scalars(chance)
    if chance.random() < 0.7:
        event["tags"] = chance.choice([[], ["a"], ["b", "a"], ["c", None], None])
    if chance.random() < 0.4:
        event["ints"] = chance.choice([[], [1], [2, 1], [None], None])
    if chance.random() < 0.7:
        user: dict[str, object] = {"city": chance.choice(["a", "b", None])}
        if chance.random() < 0.5:
            user["age"] = chance.choice([1, 2, 3, 4, 4.0, "5"])
        if chance.random() < 0.02:
            user["name"] = "x"
        event["user"] = user
    if chance.random() < 0.3:
        event["counts"] = chance.choice(
            [{}, {"a": 1}, {"a": 2, "b": 1}, {"a": None}, {"1": 1}, {"1": 2, "7": 1}]
        )
    if chance.random() < 0.02:
        name = chance.choice(["tags", "user", "counts"])
        event[name] = chance.choice([3, "a", [{"a": 1}], {"a": "x"}, [3], {"city": ["a"]}])
    if with_price and chance.random() < 0.6:
        event["price"] = chance.choice(PRICE if chance.random() < 0.1 else PRICE[:4])
    return encode(chance, event, strange=0.02)


def price_content(chance: random.Random) -> bytes:
    return nested_content(chance, with_price=True)


def changing_content(chance: random.Random) -> bytes:
    """From publishers that send other attributes, or other types."""
    event = scalars(chance)
    for name in [*event]:
        if chance.random() < 0.1:
            event[name] = chance.choice([1, 2.5, "a", None, [1], True])
    return encode(chance, event, strange=0.05)


def draw_case(name: str, chance: random.Random) -> Case:
    extra = chance.choice(EXTRAS)
    # "refuse" would refuse most of the notifications with undeclared fields
    some: Extra = "open" if extra == "refuse" else extra
    used = UNDECLARED if some == "open" else []
    kind = chance.choice([*ONE_BY_ONE])
    return {
        "plain": Case(None, "open", PLAIN, random_content),
        "computing": Case(None, "open", PLAIN + COMPUTING + NUMBER_TEXTS, double_content),
        "mixed numbers": Case(None, "open", PLAIN + COMPUTING + NUMBER_TEXTS, random_content),
        "any filters": Case(
            None, "open", [random_filter(chance) for _ in range(30)], random_content
        ),
        "changing": Case(None, "open", PLAIN + COMPUTING[:2] + NUMBER_TEXTS, changing_content),
        "nested": Case(None, "open", PLAIN + NESTED, nested_content),
        "declared": Case(SCALARS, extra, PLAIN, random_content),
        "declared, computing": Case(PLAIN_TYPES, extra, PLAIN + TYPED + COMPUTING, typed_content),
        "undeclared fields": Case(SCALARS, some, PLAIN + used, extra_content),
        "declared, nested": Case(ALL_TYPES, extra, PLAIN + TYPED + NESTED, nested_content),
        "one by one": Case(
            ALL_TYPES | ONE_BY_ONE[kind], extra, PLAIN + NESTED + ONE_BY_ONE_TEXTS[kind],
            price_content if kind == "decimals" else nested_content,
        ),
    }[name]  # fmt: skip


CASES = ["plain", "computing", "mixed numbers", "any filters", "changing", "nested", "declared",
         "declared, computing", "undeclared fields", "declared, nested",
         "one by one"]  # fmt: skip
