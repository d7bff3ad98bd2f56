"""Dialects: the table of them, and what is refused before any of them is asked."""

from __future__ import annotations

from typing import Any

import pytest

from tidings import FilterError, parse
from tidings.filters.dialects import Context, read
from tidings.filters.language.expression import Attribute, Compare, Literal

KNOWN = "cesql, cloudevents, eventbridge, sql"


def test_sql_is_the_default() -> None:
    expected = Compare("=", Attribute(("a",)), Literal(1))
    assert read("a = 1", "sql", Context()) == expected
    assert parse("a = 1", "sql") == parse("a = 1")


@pytest.mark.parametrize("name", ["", "SQL", "xpath"])
def test_an_unknown_dialect_is_refused(name: str) -> None:
    with pytest.raises(FilterError) as refused:
        parse("a = 1", name)
    assert refused.value.reason == f"there is no dialect '{name}', expected one of: {KNOWN}"
    assert refused.value.text == "a = 1"


@pytest.mark.parametrize(
    ("value", "kind"),
    [(None, "NoneType"), (5, "int"), (b"a = 1", "bytes"), (["a = 1"], "list"), ({}, "dict")],
)
def test_what_is_not_a_text_is_refused(value: Any, kind: str) -> None:
    with pytest.raises(FilterError) as refused:
        parse(value)
    assert refused.value.reason == f"found {kind}, expected the text of a filter"


@pytest.mark.parametrize("value", [None, 5, b"{}", {1, 2}])
def test_a_dialect_of_json_takes_a_text_an_object_or_a_list(value: Any) -> None:
    with pytest.raises(FilterError, match="expected the text of a filter"):
        parse(value, "cloudevents")


def test_an_object_that_is_not_json_is_refused() -> None:
    with pytest.raises(FilterError, match="the object can't be written as JSON"):
        parse({"exact": {"type": object()}}, "cloudevents")


@pytest.mark.parametrize(
    ("text", "position", "code"),
    [
        ("\ud800", 0, "D800"),
        ("a = '\udfff'", 5, "DFFF"),
        ("é = '😀' AND \udc00", 12, "DC00"),
        ("a = '\ud83d\ude00'", 5, "D83D"),  # two halves that would make a whole
    ],
)
def test_half_a_surrogate_pair_is_refused(text: str, position: int, code: str) -> None:
    with pytest.raises(FilterError, match=f"an unpaired surrogate, U\\+{code}") as refused:
        parse(text)
    assert refused.value.position == position
    assert refused.value.text == text
