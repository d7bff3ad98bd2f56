"""Named parts: a name changes nothing but what is reported, and Spark is the judge of what a part
means."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
from tests.filters import oracle, strategies
from tests.repeats import rounds

from tidings import FilterError, parse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SAME = [
    ("named('late', delay > 60)", "delay > 60"),
    ("named('a', x = 1 AND y = 2) AND z = 3", "x = 1 AND y = 2 AND z = 3"),
    ("NOT named('a', x = 1 OR y = 2) OR named('b', z)", "NOT (x = 1 OR y = 2) OR z"),
    ("named('out', named('in', x > 1) OR y > 1)", "x > 1 OR y > 1"),
    ("named('a', x > 1) IS NOT TRUE", "(x > 1) IS NOT TRUE"),
    ("NAMED('a', any(tags) = 'new')", "any(tags) = 'new'"),
    ("CASE WHEN named('b', y = 1) THEN named('a', x > 1) ELSE false END",
     "CASE WHEN y = 1 THEN x > 1 ELSE false END"),
    ("named('a', TRUE)", "TRUE"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "plain"), SAME)
def test_a_name_changes_nothing(text: str, plain: str) -> None:
    named, same = parse(text), parse(plain)
    assert named == same
    assert named.expression == same.expression
    assert named.encoded == same.encoded
    assert named.canonical().sql() == same.canonical().sql()
    assert named.covers(same)
    assert same.covers(named)
    again = parse(named.sql())
    assert again == named
    assert again.parts == named.parts
    assert named.parts
    assert not same.parts
    assert not named.canonical().parts


def test_parts() -> None:
    one = parse("named('late', delay > 60) OR named('near', dest = 'BOS' AND named('late', x = 1))")
    assert {name: part.sql() for name, part in one.parts.items()} == {
        "late": "delay > 60 OR x = 1",
        "near": "dest = 'BOS' AND x = 1",
    }
    assert one.matched_parts({"delay": 70}) == ["late"]
    assert one.matched_parts({"x": 1, "dest": "BOS"}) == ["late", "near"]
    assert one.matched_parts({"delay": None}) == []
    assert parse("named('a', x > 1) AND y = 1").matched_parts({"x": 2}) == ["a"]
    assert parse("x > 1").matched_parts({"x": 2}) == []


def test_combined_filters_keep_names() -> None:
    one, other = parse("named('a', x > 1)"), parse("y > 1")
    both = ~(one & other) | one
    assert both == parse("NOT (x > 1 AND y > 1) OR x > 1")
    assert both.parts == {"a": parse("x > 1")}
    one.slim()
    assert one.sql() == "named('a', x > 1)"


@pytest.mark.parametrize(
    ("text", "reason", "at"),
    [
        ("named('', x > 1)", "found the name '', expected 1 to 100 printable characters", 6),
        ("named('a\\n', x > 1)", "found the name 'a\\n', expected", 6),
        ("named(x, x > 1)", "named takes a constant here, found x", 6),
        ("named(5, x > 1)", "named takes a string here, found 5", 6),
        ("named('a', 5)", "found 5, an integer, expected a condition such as x > 5", 11),
        ("named('a')", "found ')', expected a comma and a condition, as in named('late'", 9),
        ("named('a', x > 1", "found the end of the filter, expected AND, OR or a closing", 16),
        ("named('a', x > 1, y)", "found ',', expected AND, OR or a closing bracket", 16),
        ("exists(l, x -> named('a', x > 1))", "found 'named', expected named around the", 15),
        ("coalesce(named('a', x > 1), y)", "found a condition, expected a value for coalesce", 9),
    ],
)
def test_refused(text: str, reason: str, at: int) -> None:
    with pytest.raises(FilterError) as refused:
        parse(text)
    assert refused.value.reason.startswith(reason)
    assert refused.value.position == at


def test_in_cloudevents() -> None:
    one = parse(
        {"any": [{"named": {"paid": {"exact": {"type": "paid"}}}},
                 {"named": {"big": {"sql": "amount > 5"}, "eur": {"suffix": {"unit": "EUR"}}}}]},
        "cloudevents",
    )  # fmt: skip
    same = {
        "any": [
            {"exact": {"type": "paid"}},
            {"all": [{"sql": "amount > 5"}, {"suffix": {"unit": "EUR"}}]},
        ]
    }
    assert one == parse(same, "cloudevents")
    assert one.matched_parts({"type": "x", "amount": 7, "unit": "cEUR"}) == ["big", "eur"]
    refusals: list[tuple[dict[str, Any], str]] = [
        ({"named": []}, "at /named: found [], expected an object of names and filters"),
        ({"named": {"": {"exact": {"a": "b"}}}}, "at /named/: found the name ''"),
        ({"named": {"a": 5}}, "at /named/a: found 5, expected an object with one of"),
    ]
    for bad, reason in refusals:
        with pytest.raises(FilterError) as refused:
            parse(bad, "cloudevents")
        assert refused.value.reason.startswith(reason)


@pytest.mark.parametrize("key", [r"\u006eamed", r"n\u0061m\u0065d", r"name\u0064"])
def test_a_name_whose_key_is_escaped(key: str) -> None:
    plain = parse('{"exact": {"type": "paid"}}', "cloudevents")
    one = parse(f'{{"{key}": {{"paid": {{"exact": {{"type": "paid"}}}}}}}}', "cloudevents")
    assert (one.key, one.expression) == (plain.key, plain.expression)
    assert one.matched_parts({"type": "paid"}) == ["paid"]


def test_explained() -> None:
    one = parse("named('late', delay > 60) AND named('near', dest = 'BOS')")
    found = one.explain({"delay": 70, "dest": "LAX"})
    assert found.parts == {"late": True, "near": False}
    assert str(found).splitlines()[-2:] == ["  part late: true", "  part near: not true"]
    assert "<td>not true</td><td>part near</td>" in found._repr_html_()


@pytest.mark.spark
@pytest.mark.parametrize("declared", [False, True])
def test_spark_judges_parts(spark: SparkSession, seed: int, declared: bool) -> None:
    """Random conditions as parts of filters: their names are reported where Spark says true."""
    rng = random.Random(f"{seed} {declared}")
    for _ in rounds(1, 4):
        with oracle.settings(spark, oracle.INTERPRETED):
            found = oracle.judged(
                spark, rng, rows=30, filters=48, declared=declared,
                text=lambda writer: strategies.Writer.filter(writer, 1),
            )  # fmt: skip
        for start in range(0, 48, 3):
            texts, says = found.texts[start : start + 3], found.says[start : start + 3]
            word = rng.choice([" OR ", " AND ", " AND NOT "])
            one = parse(
                word.join(f"named('{at}', {text})" for at, text in enumerate(texts)),
                attributes=found.attributes,
            )
            plain = word.join(f"({text})" for text in texts)
            assert one == parse(plain, attributes=found.attributes)
            for event, truths in zip(found.events, zip(*says, strict=True), strict=True):
                expected: list[Any] = [str(at) for at, true in enumerate(truths) if true is True]
                assert one.matched_parts(event) == expected
