"""The filters of the CloudEvents Subscriptions API: cases, and the same filters in the default
dialect."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from tests.repeats import draws

from tidings import Attributes, ContentGraph, FilterError, parse

CASES = json.loads((Path(__file__).parent / "cases" / "cloudevents.json").read_text("utf-8"))
NAMES = ("type", "source", "subject")
WORDS = ("com.example", "com.ex", "x", "a%b", "a_b", "back\\slash", "it's", "\\", "é")


def shown(case: dict[str, Any]) -> str:
    return json.dumps(case["filter"])[:60]


@pytest.mark.parametrize("case", CASES["matches"], ids=shown)
def test_matches(case: dict[str, Any]) -> None:
    one = parse(case["filter"], "cloudevents")
    assert one == parse(json.dumps(case["filter"]), "cloudevents")
    for event in case["true"]:
        assert one.matches(event), event
        assert one.form.holds(event), event
    for event in case["false"]:
        assert not one.matches(event), event
        assert not one.form.holds(event), event
    assert parse(one.sql()) == one


@pytest.mark.parametrize("case", CASES["refused"], ids=shown)
def test_refused(case: dict[str, Any]) -> None:
    with pytest.raises(FilterError) as refused:
        parse(case["filter"], "cloudevents")
    assert refused.value.reason == case["reason"]


@pytest.mark.parametrize("text", ["", "{", "[1,", "nul", "{'exact': {}}", '{"a": "\\ud800"}'])
def test_what_is_not_json_is_refused(text: str) -> None:
    with pytest.raises(FilterError, match=r"^this is not JSON: "):
        parse(text, "cloudevents")


def test_where_it_is_not_json() -> None:
    with pytest.raises(FilterError) as refused:
        parse('{"exact": {"ü": x}}', "cloudevents")
    assert refused.value.position == 16


def test_a_place_is_a_json_pointer() -> None:
    with pytest.raises(
        FilterError, match=r"^at /exact/a~1b~0: found a/b~, expected an attribute name"
    ):
        parse({"exact": {"a/b~": "x"}}, "cloudevents")


def test_names_are_checked_against_the_declared() -> None:
    declared = Attributes({"type": "string"})
    with pytest.raises(
        FilterError, match="at /all/0/exact/tipe: there is no attribute 'tipe'; did "
    ):
        parse({"all": [{"exact": {"tipe": "a"}}]}, "cloudevents", attributes=declared)
    with pytest.raises(FilterError, match="at /sql: there is no attribute 'tipe'"):
        parse({"sql": "tipe = 'a'"}, "cloudevents", attributes=declared)


def test_depth_is_bounded() -> None:
    deep: Any = {"exact": {"type": "a"}}
    for _ in range(30):
        deep = {"not": deep}
    one = parse(deep, "cloudevents")
    assert one.matches({"type": "a"})
    assert parse(one.sql()) == one
    for _ in range(40):
        deep = {"not": deep}
    with pytest.raises(FilterError, match="expected filters nested at most"):
        parse(deep, "cloudevents")
    text = '{"not":' * 100_000
    with pytest.raises(FilterError, match="this is not JSON"):
        parse(text, "cloudevents")


# -- the same in the default dialect -----------------------------------------------------------


def quoted(word: str) -> str:
    return "'" + word.replace("\\", "\\\\").replace("'", "\\'") + "'"


def in_two_dialects(rng: random.Random, depth: int) -> tuple[Any, str]:
    """(a filter object, the same in the default dialect)."""
    roll = rng.random() if depth else 1.0
    if roll < 0.4:
        kind, by = rng.choice((("all", "AND"), ("any", "OR")))
        parts = [in_two_dialects(rng, depth - 1) for _ in range(rng.randint(1, 3))]
        return {kind: [one for one, _ in parts]}, f" {by} ".join(f"({text})" for _, text in parts)
    if roll < 0.55:
        inner, text = in_two_dialects(rng, depth - 1)
        return {"not": inner}, f"({text}) IS NOT TRUE"
    if roll < 0.65:
        name = rng.choice(NAMES)
        return {"sql": f"EXISTS {name}"}, f"NOT isabsent({name})"
    kind, function = rng.choice((("exact", ""), ("prefix", "startswith"), ("suffix", "endswith")))
    tests = {name: rng.choice(WORDS) for name in rng.sample(NAMES, rng.randint(1, 2))}
    texts = [
        f"{function}({name}, {quoted(word)})" if function else f"{name} = {quoted(word)}"
        for name, word in tests.items()
    ]
    return {kind: tests}, " AND ".join(texts)


def test_one_filter_in_two_dialects_is_one_node(seed: int) -> None:
    rng = random.Random(seed)
    graph = ContentGraph()
    for _ in range(300):
        found, text = in_two_dialects(rng, 3)
        one, other = parse(found, "cloudevents"), parse(text)
        assert one.key == other.key, (found, text)
        assert graph.insert(one) is graph.insert(other)


# -- any object --------------------------------------------------------------------------------


def anything(rng: random.Random, depth: int) -> Any:
    kinds = ("exact", "prefix", "suffix", "all", "any", "not", "sql", "", "type", "Type", "a/b")
    roll = rng.random()
    if not depth or roll < 0.2:
        return rng.choice((None, True, 5, 1.5, "", "a", "EXISTS a", "LENGTH(a)", "a =", [], {}))
    if roll < 0.4:
        return [anything(rng, depth - 1) for _ in range(rng.randint(0, 2))]
    if roll < 0.5:
        return in_two_dialects(rng, 1)[0]
    return {rng.choice(kinds): anything(rng, depth - 1) for _ in range(rng.choice((1, 1, 1, 2)))}


def test_any_object_is_accepted_or_refused(seed: int) -> None:
    rng = random.Random(seed)
    accepted = 0
    for _ in draws(3_000, lambda: accepted > 100):
        found = anything(rng, 4)
        text = json.dumps(found)
        if rng.random() < 0.3:
            at = rng.randint(0, len(text))
            text = (
                text[:at] + rng.choice(("", "{", "}", '"', ",", "1", "\\", "null")) + text[at + 1 :]
            )
        try:
            parse(text, "cloudevents")
            accepted += 1
        except FilterError as problem:
            assert problem.reason  # noqa: PT017
            assert problem.text == text  # noqa: PT017
    assert accepted > 100
