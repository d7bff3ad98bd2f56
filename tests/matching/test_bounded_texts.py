"""The length of concatenated texts is bounded, and beyond the bound the result is the same on every
path."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from tidings import Matcher, parse
from tidings.filters.language.evaluation import evaluate
from tidings.filters.language.functions import MOST_TEXT


def nested(word: str, depth: int) -> str:
    text = word
    for _ in range(depth):
        text = f"concat({', '.join([text] * 2)})"
    return text


def test_concat_of_concat_is_null_beyond_the_bound() -> None:
    """It made 4 GB of a short filter and a short text."""
    one = parse(f"length({nested('s', 12)}) > 0")
    assert one.matches({"s": "x"})
    assert one.matches({"s": "x" * (MOST_TEXT // 4096)})
    assert not one.matches({"s": "x" * (MOST_TEXT // 4096 + 1)})
    deep = "concat(" * 30 + "s" + ", s, s, s, s, s, s, s, s)" * 30
    assert not parse(f"length({deep}) > 0").matches({"s": "x" * 100_000})


def test_of_constants_it_is_null_when_it_is_read() -> None:
    text = "'xxxxxxxx'"
    for _ in range(8):
        text = f"concat({', '.join([text] * 4)})" if len(text) < 60_000 else text
    assert len(text) < 250_000
    assert parse(f"n > 0 AND length({text}) > 0").form is not None
    assert parse("concat(" + ", ".join([f"'{'x' * 20_000}'"] * 10) + ") = 'a'").never


@pytest.mark.parametrize("size", [MOST_TEXT // 2, MOST_TEXT // 2 + 1])
@pytest.mark.usefixtures("engine")
def test_every_path_says_the_same(size: int) -> None:
    texts = ["concat(s, s) = t", "concat(s, s) IS NULL", "length(concat(s, s)) > 5",
             "cesql('LENGTH(CONCAT(s, s)) > 5')", "cesql('CONCAT_WS(s, '''', s) = t')"]  # fmt: skip
    events: list[dict[str, Any]] = [
        {"s": "x" * size, "t": "a"},
        {"s": "abc", "t": "b"},
        {"s": None, "t": "c"},
    ]
    filters = {number: parse(text) for number, text in enumerate(texts)}
    matcher = Matcher(background=False)
    matcher.add_many(filters)
    in_batches = matcher.match_batch(pa.RecordBatch.from_pylist(events * 10)).to_pylist()
    for event, together in zip(events * 10, in_batches, strict=True):
        expected = {number for number, one in filters.items() if one.matches(event)}
        assert {number for number, one in filters.items() if one.form.holds(event)} == expected
        assert set(together) == expected
    found = set(matcher.match(events[0]))
    assert found == ({2, 3} if size == MOST_TEXT // 2 else {1})


def test_overlaps_of_long_lists_take_no_square() -> None:
    one = parse(f"arrays_overlap(t, array({', '.join(map(str, range(5_000)))}))")
    assert one.matches({"t": [*range(5_000, 200_000), 7]})
    assert not one.matches({"t": [*range(5_000, 200_000)]})
    value = evaluate(one.expression, {"t": [*range(5_000, 9_000), "a"]})
    assert value is None
