"""Filters as columns: what they are, written in every form."""

from __future__ import annotations

import json

import msgspec
import numpy as np
import pyarrow as pa
import pytest

from tidings import parse
from tidings.studies.workloads.conjunctions import (
    LIKE,
    PREFIX,
    SUFFIX,
    AttributeTest,
    ConjunctionBuilder,
    Conjunctions,
    DrawnAttribute,
    StructuredFilter,
    concatenate,
    event_lines,
    sql_of_tests,
)

ATTRIBUTES = (
    DrawnAttribute("s", "string"),
    DrawnAttribute("i", "integer"),
    DrawnAttribute("x", "double"),
)


@pytest.fixture
def filters() -> Conjunctions:
    """Three filters with all kinds of tests."""
    pile = ConjunctionBuilder(ATTRIBUTES)
    pile.equal(np.array([0, 2]), "s", pa.array(["it's", 'a "b" \\']))
    pile.equal(np.array([1]), "i", np.array([7]))
    pile.between(np.array([0]), "i", np.array([-3]), np.array([4]))
    pile.between(np.array([1]), "x", np.array([0.25]), None)
    pile.between(np.array([2]), "x", None, np.array([1.5e-7]))
    pile.pattern(np.array([1]), "s", PREFIX, pa.array(["/a"]))
    pile.pattern(np.array([0]), "s", SUFFIX, pa.array([".b"]))
    pile.pattern(np.array([2]), "s", LIKE, pa.array(["a%z"]))
    return pile.filters(3)


EXPECTED = [
    [
        AttributeTest("s", "=", value="it's"),
        AttributeTest("i", "between", low=-3, high=4),
        AttributeTest("s", "suffix", value=".b"),
    ],
    [
        AttributeTest("i", "=", value=7),
        AttributeTest("x", "between", low=0.25),
        AttributeTest("s", "prefix", value="/a"),
    ],
    [
        AttributeTest("s", "=", value='a "b" \\'),
        AttributeTest("x", "between", high=1.5e-7),
        AttributeTest("s", "like", value="a%z"),
    ],
]


def test_tests_of_a_filter_keep_the_order_they_were_added_in(filters: Conjunctions) -> None:
    assert list(filters) == EXPECTED
    assert [len(filters), filters.operators()] == [3, {"=", "between", "prefix", "suffix", "like"}]


def test_sql(filters: Conjunctions) -> None:
    texts = list(filters.sql())
    assert texts[0] == "s = 'it''s' AND i BETWEEN -3 AND 4 AND s LIKE '%.b'"
    assert texts[1] == "i = 7 AND x >= 0.25 AND s LIKE '/a%'"
    assert texts[2] == "s = 'a \"b\" \\\\' AND x <= 1.5e-7 AND s LIKE 'a%z'"
    for text, tests in zip(texts, filters, strict=True):
        assert parse(sql_of_tests(tests)).canonical() == parse(text).canonical()
    assert parse(texts[2].split(" AND ")[0]).matches({"s": 'a "b" \\'})


def test_json_lines(filters: Conjunctions) -> None:
    read = [msgspec.json.decode(line, type=StructuredFilter) for line in filters.json_lines()]
    assert read == [StructuredFilter(number, tests) for number, tests in enumerate(EXPECTED)]


def test_parts_put_together_again(filters: Conjunctions) -> None:
    again = concatenate([filters.part(0, 1), filters.part(1, 3)])
    assert list(again) == EXPECTED
    assert list(again.part(1, 2)) == EXPECTED[1:2]
    assert list(filters.part(2, 99).sql()) == list(filters.sql())[2:]


def test_event_lines_leave_nulls_out() -> None:
    table = pa.table({"s": ['a"b', None, "é"], "i": [1, 2, None], "x": [0.5, None, 1e300]})
    lines = [json.loads(line) for line in event_lines(table)]
    assert lines == [{"s": 'a"b', "i": 1, "x": 0.5}, {"i": 2}, {"s": "é", "x": 1e300}]


def test_an_event_of_nothing_but_nulls_is_empty() -> None:
    table = pa.table({"s": pa.array([None, "a"]), "i": pa.array([None, 1])})
    assert event_lines(table) == [b"{}", b'{"s":"a","i":1}']
