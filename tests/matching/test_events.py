"""Encoding one event: the codes from a mapping and from JSON text are the same."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from tidings import NotificationError, parse
from tidings.filters.values.work_limit import WorkError, limit_work
from tidings.matching import Matcher

TESTS = (
    "a = 1", "a > 2.5", "a BETWEEN -3 AND 9", "a IS NULL", "a != 4", "a IN (1, 'x', true)",
    "b = 'x'", "b LIKE 'x%'", "b > 'é'", "b IN ('', 'x\"y', 'é', 'long text')", "b IS NOT NULL",
    "c = true", "c = 'x'", "c >= 1e300", "c < 9223372036854775807", "c = double('NaN')",
    "a = 1 OR b = 'x'", "NOT (b = 'x' OR c = 1)",
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -3, 4, 9, 2.5, 2.0, -0.0, 1e300, 2**63 - 1, -(2**63), 2**63, 2**70,
    "x", "", "é", 'x"y', "long text", "x\n\u2028\ud83d\ude00".encode("utf-16", "surrogatepass")
    .decode("utf-16"), [], [1, "x"], {"a": 1}, {},
)  # fmt: skip


def flat_matcher(rng: random.Random) -> tuple[Matcher, list[str]]:
    """All in one part, all terms plain attributes: what the short way for JSON text is for."""
    texts = [" AND ".join(rng.sample(TESTS, rng.randint(1, 3))) for _ in range(60)]
    matcher = Matcher(background=False)
    matcher.add_many(enumerate(texts))
    matcher.merge()
    return matcher, texts


def written(event: dict[str, Any], rng: random.Random) -> list[str | bytes]:
    """An event as JSON text, in several ways to write the same."""
    plain = json.dumps(event)
    raw = json.dumps(event, ensure_ascii=False, indent=rng.choice([None, 2]))
    twice = plain[:-1] + (", " if event else "") + json.dumps({"a": event.get("a")})[1:]
    return [plain, plain.encode(), raw, raw.encode(), f" {plain}\n", twice]


@pytest.mark.usefixtures("engine")
def test_json_text_matches_like_the_mapping(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(4):
        matcher, texts = flat_matcher(rng)
        assert (
            matcher._state.parts[0].part.probe_json("{}", matcher._state.register.dead) is not None
        )
        filters = [parse(text) for text in texts]
        for _ in range(80):
            names = rng.sample(["a", "b", "c", "other", "f0"], rng.randint(0, 5))
            event = {name: rng.choice(VALUES) for name in names}
            want = {at for at, one in enumerate(filters) if one.matches(event)}
            assert set(matcher.match(event)) == want, event
            for text in written(event, rng):
                assert set(matcher.match(text)) == want, text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1]", "found an array in JSON, expected an object"),
        ("1", "found a number in JSON, expected an object"),
        ('{"a": ' + "[" * 100_000, "nested too deeply"),
        ('{"a": ', "the event is not JSON"),
        ('{"a": 1} x', "the event is not JSON"),
        ('{"other": tru}', "the event is not JSON"),
        (b'{"other": "\xff"}', "the event is not JSON"),
        ('{"other": "\ud800"}', "the event is not JSON"),
    ],
)
def test_what_is_no_json_object_is_refused(seed: int, text: str | bytes, message: str) -> None:
    matcher, _ = flat_matcher(random.Random(seed))
    with pytest.raises(NotificationError, match=message):
        matcher.match(text)


@pytest.mark.usefixtures("engine")
def test_a_name_that_no_struct_may_have_is_looked_up_all_the_same() -> None:
    matcher = Matcher(background=False)
    matcher.add_many({n: f'`b"s\\` = {n} AND z = 1' for n in range(20)})
    matcher.merge()
    assert matcher.match({"z": 1, 'b"s\\': 3}) == [3]
    assert matcher.match(json.dumps({"z": 1, 'b"s\\': 3})) == [3]
    assert matcher.match("{}") == []


@pytest.mark.usefixtures("engine")
def test_an_event_with_few_of_many_attributes_matches_as_always(seed: int) -> None:
    """Filters test far more attributes than an event has, some nested, some computed."""
    rng = random.Random(seed)
    tests = (
        lambda a: f"{a} IS NULL", lambda a: f"{a} = {rng.randrange(3)}",
        lambda a: f"{a} = 'v{rng.randrange(3)}'", lambda a: f"{a} > {rng.random():.2f}",
        lambda a: f"{a}.x = {rng.randrange(3)}", lambda a: f"abs({a}) < {rng.randrange(3)}",
        lambda a: f"coalesce({a}, 'none') = 'none'", lambda a: f"{a} <=> b{rng.randrange(9)}",
        lambda a: f"array_contains({a}, {rng.randrange(3)})",
    )  # fmt: skip
    matcher, filters = Matcher(), {}
    for number in range(400):
        filters[number] = parse(rng.choice(tests)(f"a{rng.randrange(200)}"))
        matcher.add(number, filters[number])
    matcher.merge()
    values: tuple[object, ...] = (
        None,
        0,
        1,
        2,
        2**70,
        0.5,
        "v1",
        True,
        {"x": 1},
        {"x": None},
        [1, 2],
        [],
        "",
    )
    for _ in range(60):
        names = [f"a{rng.randrange(200)}" for _ in range(rng.randrange(6))]
        event = {name: rng.choice(values) for name in (*names, f"b{rng.randrange(9)}")}
        expected = {number for number, one in filters.items() if one.matches(event)}
        assert set(matcher.match(event)) == expected, event


def test_each_term_that_is_computed_counts_as_work() -> None:
    matcher = Matcher(background=False)
    matcher.add_many(enumerate(f"subject_field(s, {k}) = 'x'" for k in range(60)))
    matcher.add_many(enumerate((f"a{k} = 1" for k in range(60)), 60))
    event = {"s": "x.y", "a3": 1}
    assert set(matcher.match(event)) == {0, 63}
    now = 0.0

    def clock() -> float:
        nonlocal now
        now += 1
        return now

    with limit_work(clock, 30.0), pytest.raises(WorkError):
        matcher.match(event)
    now = 0.0
    with limit_work(clock, 90.0):
        assert set(matcher.match(event)) == {0, 63}
