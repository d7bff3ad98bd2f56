"""Misfits: filters that make no sense on columns of given types, each judged by itself."""

from __future__ import annotations

import random
import time
from typing import Any

import pytest
from tests.repeats import draws, rounds

from tidings import Matcher, RefusedFilters, TidingsError, parse
from tidings.filters import Misfit, misfits_of
from tidings.snapshots import Snapshot

TESTS = [
    "a > 5", "a = 'x'", "a IN (1, 'x')", "NOT (a > 5)", "a IS NULL", "a LIKE '%x'", "length(a) > 2",
    "hour(a) = 3", "array_contains(a, 'x')", "a < DATE '2024-01-01'", "a = true", "a RLIKE 'x'",
    "a > b", "b > 3", "b = 'y'", "b LIKE 'y%z'", "isnested(a)", "a + b > 3", "a != 7",
    "a IS DISTINCT FROM 5", "contains(b, 'q')", "b NOT IN ('x', 'z')", "a = 'x' OR a > 7",
]  # fmt: skip
PATTERNS = [
    '["x"]', '[{"suffix": "x"}]', '[{"cidr": "10.0.0.0/8"}]', '[{"equals-ignore-case": "X"}]',
    '[{"wildcard": "a*b*c"}]', '[{"numeric": [">", 4]}]', '[null]', '[{"exists": false}]',
    '[{"exists": true}]', '[{"anything-but": {"suffix": "x"}}]', '[{"prefix": "x"}, null]',
]  # fmt: skip
FAMILIES: dict[str, list[Any]] = {
    "boolean": [True, False], "number": [0, 6, 7.5, -3, 8], "string": ["x", "y", "abcx", "yz", ""],
    "list": [["x"], [], ["y", 5]],
}  # fmt: skip


class Types:
    def __init__(self, **families: str | None) -> None:
        self.families = families

    def type(self, path: tuple[str, ...]) -> str | None:
        return self.families.get(".".join(path))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("city > 5", "filters compare it with numbers"),
        ("NOT (city > 5)", "filters compare it with numbers"),
        ("hour(city) = 3", "hour takes a time"),
        ("city LIKE 'a%' AND city + 1 > 3", "+ takes a number"),
        ("array_contains(city, 'a')", "array_contains takes a list"),
        ("city > qty", "filters compare it with qty, a number"),
        ("city IN (qty, 'a')", "filters compare it with qty, a number"),
        ("city = 'a' OR city = 5", None),
        ("city IS DISTINCT FROM 5", None),
        ("city IS NULL", None),
        ("city LIKE 'a%' AND length(city) > 3", None),
        ("other > 5 AND length(other) > 3", None),
    ],
)
def test_what_makes_no_sense_on_a_string(text: str, expected: str | None) -> None:
    found = misfits_of(parse(text).form, Types(city="string", qty="number"))
    assert [(one.path, one.describe()) for one in found] == (
        [] if expected is None else [(("city",), expected)]
    )


@pytest.mark.parametrize(
    ("test", "kinds"),
    [
        ('[{"suffix": "x"}]', ["list", "string"]),
        ('[{"cidr": "10.0.0.0/8"}]', ["list", "string"]),
        ('[{"equals-ignore-case": "X"}]', ["list", "string"]),
        ('[{"wildcard": "a*b*c"}]', ["list", "string"]),
        ('[{"numeric": [">", 4]}]', ["list", "number"]),
        ('[{"prefix": "x"}, 7]', ["list", "number", "string"]),
        ("[null]", sorted(FAMILIES)),
        ('[{"exists": false}]', sorted(FAMILIES)),
        ('[{"anything-but": {"equals-ignore-case": "x"}}]', sorted(FAMILIES)),
    ],
)
def test_a_pattern_fits_every_type_that_one_of_its_tests_takes(test: str, kinds: list[str]) -> None:
    found = parse(f'{{"a": {test}}}', dialect="eventbridge")
    matcher = Matcher(background=False)
    matcher.add(1, found)
    fits = [kind for kind in sorted(FAMILIES) if not misfits_of(found.form, Types(a=kind))]
    assert fits == kinds
    assert [kind for kind in sorted(FAMILIES) if not matcher.misfits(Types(a=kind))] == kinds


def condition(rng: random.Random, depth: int = 0) -> str:
    if depth > 2 or rng.random() < 0.4:
        if rng.random() < 0.2:
            pattern = f'{{"{rng.choice("ab")}": {rng.choice(PATTERNS)}}}'
            return f"event_pattern('{pattern}')"
        return rng.choice(TESTS)
    join = rng.choice([" AND ", " OR "])
    return f"({join.join(condition(rng, depth + 1) for _ in range(rng.randint(2, 5)))})"


def test_the_index_finds_what_the_forms_say(seed: int) -> None:
    """The arrays of segments, merged and with removed filters, and the forms one by one."""
    rng = random.Random(f"{seed} misfits")
    for _ in rounds(5, 12):
        texts = {at: condition(rng) for at in range(80)}
        matcher = Matcher(background=False)
        matcher.add_many({at: text for at, text in texts.items() if at % 3})
        matcher.match_batch(_no_events())
        for at, text in texts.items():
            if at % 3 == 0:
                matcher.add(at, text)
        for at in rng.sample(sorted(texts), 20):
            matcher.remove(at)
            del texts[at]
        if rng.random() < 0.5:
            matcher.merge()
        types = Types(**{name: rng.choice([None, *FAMILIES, "time"]) for name in "ab"})
        expected: dict[Misfit, list[int]] = {}
        for at, text in sorted(texts.items()):
            for one in misfits_of(parse(text).form, types):
                expected.setdefault(one, []).append(at)
        found = {one: sorted(ids) for one, ids in matcher.misfits(types).items()}  # type: ignore[type-var]
        assert found == expected


def test_a_wide_filter_is_judged_as_a_whole() -> None:
    """The index tests `length(a)` of this filter. One of its patterns takes a time, though."""
    wide = " AND ".join(f"(c{at} = 1 OR d{at} = 2)" for at in range(30))
    text = f"""length(a) > 2 AND ({wide} OR event_pattern('{{"a": [{{"suffix": "x"}}]}}') OR a != 7
        OR a IS NULL)"""
    types = Types(a="time")
    assert misfits_of(parse(text).form, types) == []
    matcher = Matcher(background=False)
    matcher.add(1, text)
    assert matcher.misfits(types) == {}


def test_a_conjunction_that_misfits_never_matches(seed: int) -> None:
    rng = random.Random(f"{seed} never")
    refused = 0
    for _ in draws(3000, lambda: refused > 300):
        text = " AND ".join(rng.sample([t for t in TESTS if "OR" not in t], rng.randint(1, 3)))
        kinds = {name: rng.choice(sorted(FAMILIES)) for name in "ab"}
        filter_ = parse(text)
        if misfits_of(filter_.form, Types(**kinds)):
            refused += 1
            for _ in range(20):
                event = {n: rng.choice([None, *FAMILIES[kind]]) for n, kind in kinds.items()}
                told = filter_.matches(event)
                assert not told or "NULL" in text, f"{text} matches {event}"
    assert refused > 300


def _no_events() -> Any:
    import pyarrow as pa

    return pa.RecordBatch.from_pylist([{"z": 1}])


def test_a_check_of_many_filters() -> None:
    matcher = _twenty_thousand()
    assert matcher.misfits(Types(price="number", city="string")) == {}
    found = matcher.misfits(Types(price="string", city="string"))
    assert [len(ids) for ids in found.values()] == [20_000]


@pytest.mark.bench
def test_a_check_of_many_filters_costs_little() -> None:
    matcher = _twenty_thousand()
    start = time.thread_time()
    matcher.misfits(Types(price="number", city="string"))
    assert time.thread_time() - start < 0.05


def _twenty_thousand() -> Matcher:
    matcher = Matcher(background=False)
    matcher.add_many((at, f"price > {at} AND city = 'c{at % 5000}'") for at in range(20_000))
    matcher.match_batch(_no_events())
    return matcher


def test_who_reads_an_attribute() -> None:
    matcher = Matcher(background=False)
    wide = " AND ".join(f"(a{i} = 1 OR b{i} = 2)" for i in range(30))
    texts = {1: "x > 1", 2: "y > 1", 3: "length(x) = 2 OR y = 1", 4: "x RLIKE 'a'", 5: "x > y",
             6: "array_contains(x, 1)", 7: wide}  # fmt: skip
    matcher.add_many(texts)
    assert sorted(matcher.readers(("x",))) == [1, 3, 4, 5, 6]  # type: ignore[type-var]
    assert sorted(matcher.readers(("y",))) == [2, 3, 5]  # type: ignore[type-var]
    assert matcher.readers(("a7",)) == [7]
    assert matcher.readers(("z",)) == []


# -- refused filters ---------------------------------------------------------------------------

MANY = {f"id{at}": f"n > {at}" for at in range(10_001)} | {"id77": "n >", "id9000": "n = 'a"}


def test_bad_filters_are_listed_with_their_ids() -> None:
    for build in (Snapshot.build, Matcher(background=False).add_many):
        with pytest.raises(RefusedFilters) as caught:
            build(MANY)
        assert list(caught.value.problems) == ["id77", "id9000"]
        assert str(caught.value).startswith("2 of 10,001 filters are refused; 'id77': found the")
        assert "'id9000': found a ' that opens a string" in str(caught.value)


def test_a_long_list_is_bounded() -> None:
    with pytest.raises(RefusedFilters) as caught:
        Snapshot.build(dict.fromkeys(range(500), "n >"))
    assert len(caught.value.problems) == 500
    assert str(caught.value).endswith("; and 490 more")
    assert len(str(caught.value)) < 2000


def test_bad_filters_are_set_aside_on_request() -> None:
    snapshot = Snapshot.build(MANY, errors="collect")
    assert sorted(snapshot.refused) == ["id77", "id9000"]
    assert len(snapshot) == 9_999
    matcher = Matcher(background=False)
    assert matcher.add_many(MANY, errors="collect") == 9_999
    assert sorted(matcher.refused) == ["id77", "id9000"]  # type: ignore[type-var]
    assert matcher.match({"n": 1}) == ["id0"]
    with pytest.raises(TidingsError, match="expected 'raise' or 'collect'"):
        Snapshot.build(MANY, errors="skip")


def test_the_error_travels() -> None:
    import pickle

    with pytest.raises(RefusedFilters) as caught:
        Snapshot.build({1: "n >", 2: "n = 1"})
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)
    assert list(again.problems) == [1]
