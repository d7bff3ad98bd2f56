"""Regular expressions and LIKE: one by one, by the form, in batches by Arrow's RE2."""

from __future__ import annotations

import random
import time
from typing import Any

import pyarrow as pa
import pytest
from tests.repeats import draws

from tidings import Filter, FilterError, Matcher, parse
from tidings.filters.language.evaluation import truth
from tidings.filters.language.expression import Attribute, Call, Literal
from tidings.filters.values import regular
from tidings.matching.rank_space.arrow_evaluation import Columnar
from tidings.matching.rank_space.arrow_functions import NotColumnar

HANGING = 20.0  # seconds of processor time; a matcher that goes back would take hours

Columns = dict[tuple[str, ...], Any]
ATOMS = ["a", "b", ".", "é", "ß", "日", "\\n", "\n", "[ab]", "[^a]", "[é-ü]", r"\d", r"\w", r"\s",
         r"\b", r"\B", "^", "$", r"\A", r"\z", "(?i:k)", "(?i:é)", r"\pL", r"\P{Lu}", "x{0}", "\\.",
         "(?:)", r"\x{1f600}", "[[]", "&&", "-", "%", "\\\\"]  # fmt: skip
LETTERS = ["a", "b", "k", "K", "\u212a", "é", "É", "ß", "日", "\n", "\r", "\x0b", " ", "1",
           "\U0001f600", "\ufffd", ".", "%", "\\", "\0", "\u2028"]  # fmt: skip


def random_pattern(rng: random.Random, depth: int = 0) -> str:
    parts = []
    for _ in range(rng.randint(0, 4)):
        part = rng.choice(ATOMS)
        if depth < 3 and rng.random() < 0.3:
            inner = random_pattern(rng, depth + 1)
            part = f"({rng.choice(['', '?:', '?i:', '?s:', '?m:'])}{inner})"
        parts.append(part + rng.choice(["", "", "", "*", "+", "?", "*?", "{2}", "{0,3}", "{1,}"]))
    return rng.choice(["", "|"]).join(parts)


def random_text(rng: random.Random) -> str:
    return "".join(rng.choices(LETTERS, k=rng.randint(0, 12)))


def test_one_by_one_is_as_in_batches(seed: int) -> None:
    rng = random.Random(f"{seed} regular")
    compared = hits = 0
    for _ in draws(2_000, lambda: compared > 500 and hits > 1000):
        pattern = random_pattern(rng)
        try:
            one = regular.compile_pattern(pattern)
        except regular.RegularError:
            continue
        texts = [random_text(rng) for _ in range(20)]
        columns: Columns = {("s",): pa.array([*texts, None], pa.large_string())}
        node = Call("rlike", (Attribute(("s",)), Literal(pattern)))
        try:
            found = Columnar(columns, 21).condition(node).to_pylist()
        except NotColumnar:
            assert not regular.columns_agree(pattern)
            continue
        expected = [one.search(text) for text in texts]
        assert found == [*expected, None], pattern
        compared += 1
        hits += sum(map(bool, expected))
    assert compared > 500
    assert hits > 1_000


@pytest.mark.usefixtures("engine")
def test_all_ways_agree_on_patterns(seed: int) -> None:
    """The reference, the form, the matcher one by one and in batches."""
    rng = random.Random(f"{seed} ways")
    filters: dict[int, Filter] = {}
    while len(filters) < 300:
        if rng.random() < 0.5:
            word = "RLIKE"
            pattern = random_pattern(rng)
        else:
            word = rng.choice(["LIKE", "ILIKE"])
            pattern = "".join(rng.choices(["a", "b", "é", "K", "\n", "%", "%", "_"], k=6))
        written = pattern.replace("\\", "\\\\").replace("'", "''").replace("\0", "")
        text = f"s {rng.choice(['', 'NOT '])}{word} '{written}'"
        try:
            filters[len(filters)] = parse(text)
        except FilterError:
            continue
    events = [{"s": random_text(rng)} for _ in range(60)] + [{"s": None}]
    matcher = Matcher(background=False)
    matcher.add_many(filters)
    in_batches = matcher.match_batch(pa.RecordBatch.from_pylist(events)).to_pylist()
    for event, together in zip(events, in_batches, strict=True):
        expected = {n for n, one in filters.items() if truth(one.expression, event) is True}
        assert {n for n, one in filters.items() if one.form.holds(event)} == expected
        assert set(matcher.match(event)) == expected
        assert set(together) == expected


@pytest.mark.timeout(120)
@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|aa)+$", "(.*)*x"])
def test_no_pattern_goes_back_in_batches(pattern: str) -> None:
    """A pipeline hung for good at such a row."""
    matcher = Matcher(background=False)
    matcher.add(1, parse(f"s RLIKE '{pattern}'"))
    rows = pa.RecordBatch.from_pylist([{"s": "a" * letters + "!"} for letters in (28, 60_000)] * 10)
    began = time.process_time()
    assert matcher.match_batch(rows).to_pylist() == [[]] * 20
    assert time.process_time() - began < HANGING


@pytest.mark.usefixtures("engine")
def test_long_texts_are_null_in_batches_too() -> None:
    one = regular.compile_pattern("a[ab]{500}c")
    texts = ["b" * (one.longest + 1), "a" + "b" * 500 + "c", "é" * (one.longest // 2 + 1), None, ""]
    columns: Columns = {("s",): pa.array(texts, pa.large_string())}
    node = parse("s RLIKE 'a[ab]{500}c'").expression
    assert Columnar(columns, 5).condition(node).to_pylist() == [None, True, None, None, False]
    matcher = Matcher(background=False)
    matcher.add_many({0: "s RLIKE 'a[ab]{500}c'", 1: "(s RLIKE 'a[ab]{500}c') IS NULL"})
    many = [{"s": text} for text in texts] * 20
    in_batches = matcher.match_batch(pa.RecordBatch.from_pylist(many)).to_pylist()
    assert [set(ids) for ids in in_batches] == [set(matcher.match(one)) for one in many]
    assert in_batches[:5] == [[1], [0], [1], [1], []]
