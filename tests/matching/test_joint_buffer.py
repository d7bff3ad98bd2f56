"""The join of all access terms, when its output buffer is full before it is done."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tidings import Matcher, parse
from tidings.matching.segments import part


def random_filter(rng: random.Random) -> str:
    tests = [
        rng.choice([f"n{rng.randrange(3)} > {rng.randrange(9)}",
                    f"s{rng.randrange(3)} = '{rng.choice('abc')}'",
                    f"array_contains(l, {rng.randrange(4)})",
                    f"n{rng.randrange(3)} * 2 < {rng.randrange(20)}"])
        for _ in range(rng.randrange(1, 4))
    ]  # fmt: skip
    return rng.choice([" AND ", " OR "]).join(tests)


def random_event(rng: random.Random) -> dict[str, Any]:
    event: dict[str, Any] = {f"n{at}": rng.randrange(10) for at in range(3) if rng.random() < 0.9}
    event |= {f"s{at}": rng.choice("abcd") for at in range(3) if rng.random() < 0.9}
    return event | {"l": [rng.randrange(5) for _ in range(rng.randrange(3))]}


@pytest.mark.parametrize("room", [1, 7, 1 << 20])
@pytest.mark.usefixtures("engine")
def test_a_full_buffer_is_continued(seed: int, room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part, "ROOM", room)
    rng = random.Random(f"{seed} {room}")
    filters = [random_filter(rng) for _ in range(60)]
    matcher = Matcher()
    matcher.add_many(enumerate(filters))
    events = [random_event(rng) for _ in range(40)]
    expected = [[n for n, text in enumerate(filters) if parse(text).matches(one)] for one in events]
    assert sum(map(len, expected)) > 40
    found = matcher.match_batch(events).to_pylist()
    assert [sorted(one) for one in found] == expected
