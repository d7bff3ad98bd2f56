"""What Arrow computes over columns is what the reference semantics gives row by row."""

from __future__ import annotations

import contextlib
import random
from typing import Any

import pyarrow as pa
import pytest
from tests.filters.strategies import (
    INT_MAX,
    INT_MIN,
    STRINGS,
    VALUES,
    Schema,
    Writer,
    event,
    like_pattern,
    schema,
)
from tests.matching.tables import arrow_schema, arrow_type
from tests.repeats import draws

from tidings import FilterError, parse
from tidings.filters.dialects import Context
from tidings.filters.dialects.sql.dialect import parse_term
from tidings.filters.language.evaluation import evaluate
from tidings.filters.language.expression import Attribute, Call, Expression, Literal, attributes_of
from tidings.filters.values.sets import key
from tidings.matching import Matcher
from tidings.matching.rank_space import columns
from tidings.matching.rank_space.arrow_evaluation import Columnar
from tidings.matching.rank_space.arrow_functions import NotColumnar
from tidings.matching.segments import residuals
from tidings.matching.segments.residuals import Residuals

NUMBERS = [
    "m + n", "m - n", "m * n", "m / n", "m % n", "m DIV n", "-m", "abs(m)", "floor(m)", "ceil(m)",
    "floor(m / 3)", "m + 1", "2 * m", "m / 0", "m % 7", "m % -3", "m DIV 0", "m - 0.5D", "m / 0.0D",
    "coalesce(m, n)", "coalesce(m, 4)", "isnan(m)", "abs(-m) + n * n", "ceil(m * 1e300)",
]  # fmt: skip
TEXTS = [
    "lower(s)", "upper(s)", "trim(s)", "reverse(s)", "length(s)", "concat(s, t)", "s || 'é' || t",
    "substring(s, 2)", "substring(s, 0, 1)", "substring(s, -2)", "substring(s, -3, 2)",
    "substring(s, -2, 9)", "substring(s, 1, 0)", "substring(s, 2, -1)", "substring(s, 3, 1)",
    "substring(s, -1, 1)", "coalesce(s, t)", "lower(trim(s))", "length(lower(s))",
    "substring(s, 1, 9223372036854775807)", "substring(s, -9223372036854775807, 3)",
]  # fmt: skip
CONDITIONS = [
    "m < n", "m <= n", "m > n", "m >= n", "m = n", "m != n", "m <=> n", "m < 2 * n", "s < t",
    "s <= t", "s = t", "s <=> t", "s != lower(t)", "m = s", "m <=> s", "b = c", "b < c", "b <=> c",
    "m BETWEEN n AND 5", "m IN (n, 3, NULL)", "s IN (t, 'a')", "contains(s, '')",
    "contains(lower(s), 'a')", "startswith(s, 'a')", "endswith(upper(s), 'B')", "endswith(s, '')",
    "s LIKE '%a%b%'", "s LIKE '_'", "s LIKE 'a_%'", r"s LIKE '%\\%%\\_%'", "s LIKE '%\n_'",
    "upper(s) LIKE '%É_%'", "s LIKE '_\U0010ffff%\U0010ffff'", "s LIKE '%.*%(%'",
    r"s LIKE '\u0000%_'",
    "(m < n) IS NULL", "(m < n) IS TRUE", "(s < t) IS NOT FALSE", "NOT (m < n AND s < t)",
    "m < n OR s = t OR b", "length(s) < m", "m + n < n * 2", "isnan(m / n)", "b AND m < n",
]  # fmt: skip
# What each attribute may be; the usual types come first and more often.
KINDS = {
    "m": ("small", "integer", "double", "string"), "n": ("small", "integer", "double", "boolean"),
    "s": ("string", "string", "small"), "t": ("string", "string", "boolean"),
    "b": ("boolean", "string"), "c": ("boolean", "double"),
}  # fmt: skip


def drawn(rng: random.Random, kind: str, count: int) -> Any:
    """A column of a kind, or one that is nothing but null."""
    if rng.random() < 0.05:
        return pa.nulls(count)
    pool = (*VALUES[kind], None, None)
    return pa.array([rng.choice(pool) for _ in range(count)], arrow_type(kind))


def compare(node: Expression, batch: pa.RecordBatch) -> bool:
    """Whether Arrow computed it; if it did, every row is right."""
    paths = attributes_of(node)
    found = {path: columns.attribute(batch, path) for path in paths}
    try:
        values = Columnar(found, batch.num_rows).condition(node).to_pylist()
    except NotColumnar:
        return False
    for row, value in zip(batch.to_pylist(), values, strict=True):
        want = evaluate(node, row)
        assert type(want) is type(value), (node, row, want, value)
        assert key(want) == key(value), (node, row, want, value)
    return True


@pytest.mark.parametrize("text", [*NUMBERS, *TEXTS, *CONDITIONS])
def test_arrow_computes_what_the_reference_does(seed: int, text: str) -> None:
    rng = random.Random(f"{seed} {text}")
    if text in CONDITIONS:
        node = parse(text).expression
    else:
        node = parse_term(text, Context(None, {}))
    computed = 0
    for round_ in draws(12, lambda: computed >= 8):
        kinds = {name: of[0] if round_ < 10 else rng.choice(of) for name, of in KINDS.items()}
        batch = pa.RecordBatch.from_pydict(
            {name: drawn(rng, kind, 60) for name, kind in kinds.items()}
        )
        computed += compare(node, batch)
    assert computed >= 8  # values at the ends of 64 bits may be left to Python


@pytest.mark.parametrize("text", [*NUMBERS, *TEXTS])
def test_filters_that_compute_match_the_same_in_batches(seed: int, text: str) -> None:
    """Against the reference semantics, with values of any type, for few and for many rows."""
    rng = random.Random(f"{seed} {text}")
    filters = []
    for test in ("> 1", "= 0", "<= 2.5", "IS NULL", "= 'a'", "< 'B'", "IN (3, 4)"):
        with contextlib.suppress(FilterError):  # the term is of another type
            filters.append(parse(f"{text} {test}"))
    matcher = Matcher(background=False)
    for number, one in enumerate(filters):
        matcher.add(number, one)
    for rows in (5, 60, 200):
        kinds = {name: rng.choice(of) for name, of in KINDS.items()}
        batch = pa.RecordBatch.from_pydict(
            {name: drawn(rng, kind, rows) for name, kind in kinds.items()}
        )
        found = set(zip(*(one.tolist() for one in matcher.match_pairs(batch)), strict=True))
        events = batch.to_pylist()
        assert found == {
            (row, number)
            for row, event in enumerate(events)
            for number, one in enumerate(filters)
            if one.matches({name: value for name, value in event.items() if value is not None})
        }


@pytest.mark.parametrize(
    ("text", "row"),
    [
        ("m + n", {"m": INT_MAX, "n": 1}),
        ("m - n", {"m": INT_MIN, "n": 1}),
        ("m * n", {"m": INT_MAX, "n": 2}),
        ("m DIV n", {"m": INT_MIN, "n": -1}),
        ("-m", {"m": INT_MIN, "n": 0}),
        ("abs(m)", {"m": INT_MIN, "n": 0}),
        ("coalesce(m, n)", {"m": 1, "n": 1.5}),
        ("m < n", {"m": 2**53 + 1, "n": 2.0**53}),
        ("m % n", {"m": 5.5, "n": 2.0}),
        (r"s RLIKE r'\pL'", {"s": "a"}),  # another RE2 may have other tables of Unicode
    ],
)
def test_what_arrow_would_get_wrong_is_not_computed(text: str, row: dict[str, Any]) -> None:
    node = parse_term(text, Context(None, {})) if "<" not in text else parse(text).expression
    assert not compare(node, pa.RecordBatch.from_pylist([row]))


def test_random_patterns(seed: int) -> None:
    rng = random.Random(f"{seed} patterns")
    batch = pa.RecordBatch.from_pydict({"s": [*STRINGS, None]})
    for _ in range(400):
        pattern = Literal(like_pattern(rng))
        for name in ("like", "contains", "startswith", "endswith"):
            assert compare(Call(name, (Attribute(("s",)), pattern)), batch)


def conditions(rng: random.Random, of: Schema, count: int) -> list[Expression]:
    writer = Writer(rng, of, spark=False)
    found: list[Expression] = []
    while len(found) < count:
        try:
            found.append(parse(writer.filter(1)).expression)
        except FilterError:
            continue
    return found


def test_random_conditions(seed: int) -> None:
    rng = random.Random(f"{seed} columnar")
    computed = total = 0
    for _ in draws(8, lambda: computed > total / 4):
        of = schema(rng)
        batch = pa.RecordBatch.from_pylist(
            [event(rng, of) for _ in range(50)], schema=arrow_schema(of)
        )
        for node in conditions(rng, of, 100):
            computed += compare(node, batch)
            total += 1
    assert computed > total / 4


TERMS = ["s LIKE '%a%b%'", "s RLIKE 'a|b'", "s < t", "m % 2.5 < n", "day(s) < 5 OR b", "m < n"]


@pytest.mark.parametrize("demand", [0, 1, 10_000])
@pytest.mark.parametrize("text", TERMS)
def test_outcomes_are_those_of_the_needed_rows(seed: int, text: str, demand: int) -> None:
    rng = random.Random(f"{seed} {text} {demand}")
    node = parse(text).expression
    batch = pa.RecordBatch.from_pydict({n: drawn(rng, of[0], 200) for n, of in KINDS.items()})
    needed = sorted(rng.sample(range(200), 80))
    outcomes = Residuals(batch, pa.array(needed).to_numpy()).outcomes(node, demand)
    if demand == 0:
        assert outcomes is None  # no rows, no column
        return
    if outcomes is not None:
        rows = batch.to_pylist()
        want = [{None: 0, False: 1, True: 2}[evaluate(node, rows[at])] for at in needed]
        assert outcomes.tolist() == want
    assert outcomes is not None or demand == 1 or "2.5" in text or " OR " in text


def test_a_batch_passes_its_residuals_however_they_are_evaluated(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(f"{seed} passing")
    batch = pa.RecordBatch.from_pydict({n: drawn(rng, of[0], 300) for n, of in KINDS.items()})
    matcher = Matcher(background=False)
    tests = [text for text in (*CONDITIONS, *TERMS) if "\0" not in text]
    for number in range(120):
        one, other = rng.sample(tests, 2)
        matcher.add(number, f"({one}) AND NOT ({other}) AND n >= {rng.randint(-9, 5)}")
    want = [set(matcher.match(row)) for row in batch.to_pylist()]
    for worth, least in ((0, 16), (1, 16), (32, 16), (1 << 40, 0)):  # from no column to all
        monkeypatch.setattr(residuals, "WORTH", worth)
        monkeypatch.setattr(residuals, "LEAST", least)
        assert [set(ids) for ids in matcher.match_batch(batch).to_pylist()] == want
