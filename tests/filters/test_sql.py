"""The default dialect: what a text means, and the messages for invalid texts.

Cases are data: `precedence.json` has texts and the same with brackets, `refused.json` texts that
are refused, with the position and the reason in full.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tidings import Attributes, FilterError, Ontology, parse
from tidings.filters.language.expression import MAX_DEPTH, And, Attribute, Or

CASES = Path(__file__).parent / "cases"
PRECEDENCE: list[dict[str, str]] = json.loads((CASES / "precedence.json").read_text())
REFUSED = json.loads((CASES / "refused.json").read_text())
DECLARED = Attributes(
    {n: Ontology(k) if isinstance(k, dict) else k for n, k in REFUSED["declared"].items()}
)


@pytest.mark.parametrize("case", PRECEDENCE, ids=lambda case: case["text"])
def test_text_means(case: dict[str, str]) -> None:
    expression = parse(case["text"]).expression
    assert expression == parse(case["means"]).expression
    if "not" in case:
        assert expression != parse(case["not"]).expression


@pytest.mark.parametrize("case", REFUSED["cases"], ids=lambda case: case["text"] or "nothing")
def test_text_is_refused(case: dict[str, Any]) -> None:
    with pytest.raises(FilterError) as caught:
        parse(case["text"], attributes=DECLARED if case.get("declared") else None)
    problem = caught.value
    assert (problem.position, problem.reason) == (case["position"], case["reason"])
    assert problem.text == case["text"]
    assert str(problem) == f"{case['reason']} (at character {case['position'] + 1})"


def test_pointer_shows_where() -> None:
    with pytest.raises(FilterError) as caught:
        parse("price > 5 AND volume >> 3")
    assert caught.value.pointer() == "price > 5 AND volume >> 3\n                      ^"


def test_chains_are_flat() -> None:
    names = (Attribute(("a",)), Attribute(("b",)), Attribute(("c",)))
    assert parse("a AND b AND c").expression == And(names)
    nested = parse("a OR (b OR (c OR d))").expression
    assert isinstance(nested, Or)
    assert len(nested.items) == 4


def test_depth_is_that_of_brackets_and_operators() -> None:
    for before, after in (("(", ")"), ("NOT ", ""), ("lower(", ")"), ("- ", "")):
        deep = before * (MAX_DEPTH + 1) + "a" + after * (MAX_DEPTH + 1)
        with pytest.raises(FilterError, match="nested more than 100 levels deep") as caught:
            parse(deep + " IS NULL")
        assert deep[caught.value.position :].startswith((before.strip(), "a"))
        parse(before * 40 + "a" + after * 40 + " IS NULL")
    with pytest.raises(FilterError, match="nested more than 100 levels deep"):
        parse(" + ".join("a" * 200) + " = 1")
    parse(" AND ".join("a" * 200))


def test_not_a_text() -> None:
    with pytest.raises(FilterError, match="found int, expected the text of a filter"):
        parse(5)  # type: ignore[arg-type]
    with pytest.raises(FilterError, match="an unpaired surrogate, U\\+D800") as caught:
        parse("x = '\ud800'")
    assert caught.value.position == 5


def test_functions_of_the_application() -> None:
    def twice(value: Any) -> Any:
        return value * 2

    functions = {"twice": twice}
    one = parse("twice(x) > 5 AND y = 1", functions=functions)
    assert one.matches({"x": 3, "y": 1})
    assert not one.matches({"x": 2, "y": 1})
    assert not one.matches({"y": 1})
    assert one.sql() == "twice(x) > 5 AND y = 1"
    assert parse(one.sql(), functions=functions) == one
    with pytest.raises(FilterError, match=r"no function 'twise'; did you mean twice\?"):
        parse("twise(x) > 5", functions=functions)
    with pytest.raises(FilterError, match="no function 'twice'"):
        parse("twice(x) > 5")
