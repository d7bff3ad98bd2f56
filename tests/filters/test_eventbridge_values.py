"""A pattern distinguishes values that are equal in Python."""

from __future__ import annotations

from typing import Any

import pytest

from tidings import Attributes, Matcher, parse

TAGS = Attributes({"tags": "list", "b": "string"})
VALUES: list[Any] = [1, True, 0, False, "1", "true", 1.5]


@pytest.mark.parametrize("wanted", [[1, True], [True, 1], [0, False, "1"], [1], [True], [1.5, 1]])
def test_ones_and_truths_in_a_declared_list(wanted: list[Any]) -> None:
    pattern = parse({"tags": wanted}, "eventbridge", attributes=TAGS)
    matcher = Matcher(TAGS)
    matcher.add("p", pattern)
    kinds = [(type(one), one) for one in wanted]
    for value in VALUES:
        expected = (type(value), value) in kinds
        assert pattern.matches({"tags": [value]}) == expected, value
        assert bool(matcher.match({"tags": [value]})) == expected, value
    assert parse(pattern.sql(), attributes=TAGS) == pattern


def test_a_field_that_is_tested_twice() -> None:
    pattern = parse(
        {"tags": [True], "$or": [{"tags": [1]}, {"b": ["x"]}]}, "eventbridge", attributes=TAGS
    )
    assert pattern.matches({"tags": [True], "b": "x"})
    assert not pattern.matches({"tags": [1], "b": "x"})
