"""The preprocessor of a rendezvous point, against filters one by one."""

from __future__ import annotations

import random

import msgspec
import pytest

from tidings.broker.interests import GraphInterests
from tidings.filters import Attributes, parse
from tidings.model import TidingsError

WORDS = ["a", "b", "ab", "c"]


def random_filter(chance: random.Random) -> str:
    tests = [
        f"n > {chance.randrange(8)}",
        f"n <= {chance.randrange(8)}",
        f"n IN ({chance.randrange(8)}, {chance.randrange(8)})",
        f"word = '{chance.choice(WORDS)}'",
        f"word LIKE '{chance.choice('ab')}%'",
        f"length(word) > {chance.randrange(3)}",
    ]
    picked = chance.sample(tests, chance.randrange(1, 4))
    return f" {chance.choice(['AND', 'OR'])} ".join(picked)


def lowest(matched: dict[int, str]) -> set[int]:
    """Those that cover no other one, but for one that covers it as well."""
    filters = {number: parse(text) for number, text in matched.items()}
    return {
        a
        for a, one in filters.items()
        if not any(one.covers(other) and not other.covers(one) for other in filters.values())
    }


def test_against_filters_one_by_one(seed: int) -> None:
    chance = random.Random(seed)
    interests = GraphInterests()
    there: dict[int, str] = {}
    for step in range(150):
        if there and chance.random() < 0.25:
            number = chance.choice(sorted(there))
            interests.remove(number)
            del there[number]
        else:
            text = random_filter(chance)
            number = interests.place(text.encode()).node
            there.setdefault(number, text)
        if step % 40 == 39:  # as after a restart
            stored = [(number, text.encode()) for number, text in sorted(there.items())]
            interests = GraphInterests(None, stored, last=1000 + step)
            placed = [one.node for one in interests.all_placed()]
            assert sorted(placed) == sorted(there)
        for _ in range(4):
            event = {"n": chance.randrange(-1, 9), "word": chance.choice([*WORDS, None])}
            matched = {one: text for one, text in there.items() if parse(text).matches(event)}
            found = interests.tag(msgspec.json.encode(event))
            assert sorted(found) == sorted(lowest(matched)), event


def test_what_is_refused() -> None:
    interests = GraphInterests(Attributes({"n": "integer"}))
    assert interests.place(b"n > 3").node == 1
    assert interests.tag(b'{"n": 4}') == [1]
    for content in (b"[1]", b"{", b'{"n": 1e999}', b"\xff", b"[" * 100_000):
        with pytest.raises(TidingsError):
            interests.tag(content)
    for interest in (b"n >", b"m > 3", b"\xff"):
        with pytest.raises(TidingsError):
            interests.place(interest)
    assert interests.place(b"n  >  3").node == 1


def test_a_note_on_filters_that_can_never_match() -> None:
    interests = GraphInterests(Attributes({"n": "integer"}, extra="open"))
    texts = [b"n > 3 AND n < 4", b"FALSE", b"x IS NULL OR x IS NOT NULL", b"TRUE", b"n > 3"]
    placed = [interests.place(text) for text in (*texts, *texts)]
    never = "the filter can never match: "
    assert [(one.note, one.never) for one in placed[:5]] == [
        (f"{never}no value of n, an integer, is both > 3 and < 4", True),
        (f"{never}it is FALSE", True),
        ("the filter matches every event, whatever the value of x is", False),
        ("", False),
        ("", False),
    ]
    assert [(one.note, one.never) for one in placed[5:]] == [
        (one.note, one.never) for one in placed[:5]
    ]
