"""Fresh filters against events that lack attributes: the index must leave out no filter."""

from __future__ import annotations

import random
from typing import Any

from tests.repeats import draws

from tidings import parse
from tidings.matching.write_buffer import WriteBuffer

TESTS = ["{a} > 3", "{a} = 2", "{a} IN (1, 2)", "{a} IS NULL", "{a} IS NOT NULL", "NOT ({a} <=> 2)",
         "{a} <=> NULL", "coalesce({a}, 5) > 3", "{a}.x = 1", "{a}.x IS NULL"]  # fmt: skip


def random_filter(rng: random.Random) -> str:
    tests = [rng.choice(TESTS).format(a=rng.choice("abc")) for _ in range(rng.randrange(1, 4))]
    return rng.choice([" AND ", " OR "]).join(tests)


def random_event(rng: random.Random) -> dict[str, Any]:
    values: list[Any] = [1, 2, 5, None, {"x": 1}, {}]
    return {name: rng.choice(values) for name in "abcdefgh" if rng.random() < 0.4}


def test_no_filter_is_left_out(seed: int) -> None:
    rng = random.Random(seed)
    forms = {at: parse(random_filter(rng)).form for at in range(200)}
    buffer = WriteBuffer()
    for at, form in forms.items():
        buffer.add(at, form)
    matched = 0
    for step in draws(300, lambda: matched > 1000):
        if step % 3 == 0 and forms:
            gone = rng.choice([*forms])
            del forms[gone]
            buffer.discard(gone)
        event = random_event(rng)
        expected = [at for at, form in forms.items() if form.holds(event)]
        assert sorted(buffer.match(event)) == expected, event
        matched += len(expected)
    assert matched > 1_000
