"""Event patterns explained in their own terms, by `explain` and `doctor`."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from tests.cli.conftest import Run, Write
from tests.repeats import rounds

from tidings import Attributes, Matcher, parse
from tidings.cli.filters.doctor_command import AcceptedValues, covers
from tidings.filters.dialects import DIALECTS

PATTERN = {
    "source": ["aws.ec2"],
    "detail": {"state": ["on", {"prefix": "st"}], "tags": {"the key": [{"exists": True}]}},
}


def values_wanted(text: str) -> AcceptedValues:
    words = DIALECTS["eventbridge"].words
    assert words is not None
    return {field.path: field.values for field in words.fields(text)}


def explained(run: Run, pattern: Any, event: Any) -> tuple[int, list[Any]]:
    words = ("--dialect", "eventbridge", "--json", "--event", json.dumps(event))
    done = run("explain", "--filter", json.dumps(pattern), *words)
    ((report,),) = (one["alternatives"] for one in done.records)
    return done.code, [(t["term"], t["expected"], t["actual"], t["passed"]) for t in report]


def test_one_line_for_each_field(run: Run) -> None:
    event = {"source": "aws.ec2", "detail": {"state": ["off", None], "n": 1}}
    assert explained(run, PATTERN, event) == (
        1,
        [
            ("source", '["aws.ec2"]', '"aws.ec2"', True),
            ("detail.state", '["on",{"prefix":"st"}]', '["off",null]', False),
            ("detail.tags.the key", '[{"exists":true}]', "absent", False),
        ],
    )
    shown = run("explain", "--filter", json.dumps(PATTERN), "--dialect", "eventbridge", "--event",
                json.dumps(event))  # fmt: skip
    assert 'does not match: expected ["on",{"prefix":"st"}], but detail.state is' in shown.out
    for word in ("isnested", "event_pattern", " IS NULL"):
        assert word not in shown.out


EVENT = {"source": "aws.ec2", "detail": {"state": ["off", None], "n": 1}}
SAID = """\
does not match
  failed: expected ["on",{"prefix":"st"}], but detail.state is ["off",null]
  failed: expected [{"exists":true}], but detail.tags.the key is absent
  passed: ["aws.ec2"] (source is "aws.ec2")"""


def test_python_says_the_same() -> None:
    """However the filter came about: from a text, from an object, from the SQL that logs and
    matchers keep, on declared attributes."""
    declared = Attributes(
        {"source": "string", "detail": "struct<state: list<string>, tags: struct>"}, extra="open"
    )
    one = parse(json.dumps(PATTERN), "eventbridge")
    pattern = json.dumps(PATTERN)
    matcher = Matcher(background=False)
    matcher.add("one", one)
    matcher.merge()
    for found in (
        one, parse(PATTERN, "eventbridge"), parse(one.sql()), matcher.filter("one"),
        parse(f"event_pattern('{pattern}')"), parse(pattern, "eventbridge", attributes=declared),
        parse(parse(pattern, "eventbridge", attributes=declared).sql(), attributes=declared),
    ):  # fmt: skip
        assert set(str(found.explain(EVENT)).splitlines()) == set(SAID.splitlines()), found
    assert str(one.explain(EVENT)) == SAID
    assert str(matcher.explain("one", json.dumps(EVENT))) == str(parse(one.sql()).explain(EVENT))
    plain = parse({"a": ["x"]}, "eventbridge", attributes=Attributes({"a": "string"}))
    assert str(plain.explain({"a": "y"})) == (
        'does not match\n  failed: expected ["x"], but a is "y"'
    )
    assert plain.sql() == "a = 'x'"  # from here on it is a condition like any other


def test_what_was_combined_is_explained_as_sql() -> None:
    one = parse(PATTERN, "eventbridge")
    for found in (one & parse("n > 1"), ~one):
        said = str(found.explain(EVENT))
        assert "isnested" in said or "n > 1" in said
        assert found.explain(EVENT).matched is found.matches(EVENT)
    assert str((one | one.canonical()).explain(EVENT)) == SAID  # which is the same filter


def test_either(run: Run) -> None:
    pattern = {"detail": {"$or": [{"a": [1]}, {"b": [{"numeric": [">", 5]}], "c": ["x"]}]}}
    code, tests = explained(run, pattern, {"detail": {"a": 2, "b": 7}})
    assert code == 1
    assert tests == [
        ("detail.$or", "one of 2 alternatives", "none of them", False),
        ("$or 1: detail.a", "[1]", "2", False),
        ("$or 2: detail.b", '[{"numeric":[">",5]}]', "7", True),
        ("$or 2: detail.c", '["x"]', "absent", False),
    ]
    code, tests = explained(run, pattern, {"detail": {"a": 1}})
    assert (code, tests) == (
        0, [("detail.$or", "one of 2 alternatives", "alternative 1 matches", True)],
    )  # fmt: skip


def test_fields_that_match_in_different_elements(run: Run) -> None:
    event = {"lines": [{"sku": "a", "price": 1}, {"sku": "b", "price": 300}]}
    pattern = {"lines": {"sku": ["a"], "price": [{"numeric": [">", 250]}]}}
    code, tests = explained(run, pattern, event)
    assert code == 1
    assert tests[1:] == [
        ("lines.price", '[{"numeric":[">",250]}]', "1, 300", True),
        ("the match", "all fields below an array in one element of it", "spread over several",
         False),
    ]  # fmt: skip


def random_pattern(random_: random.Random, depth: int = 0) -> dict[str, Any]:
    tests = ["x", "y", 1, 2, None, {"prefix": "x"}, {"exists": True}, {"anything-but": "x"},
             {"numeric": [">", 1]}]  # fmt: skip
    found: dict[str, Any] = {}
    for name in random_.sample("abc", random_.randint(1, 2)):
        if depth < 2 and random_.random() < 0.3:
            found[name] = random_pattern(random_, depth + 1)
        else:
            found[name] = random_.sample(tests, random_.randint(1, 3))
    return found


def random_value(random_: random.Random, depth: int = 0) -> Any:
    if depth < 3 and random_.random() < 0.3:
        return [random_value(random_, depth + 1) for _ in range(random_.randint(0, 3))]
    if depth < 3 and random_.random() < 0.3:
        return {name: random_value(random_, depth + 1) for name in random_.sample("abc", 2)}
    return random_.choice(["x", "xy", "y", 1, 2, None, True])


def test_the_verdict_is_that_of_the_filter(seed: int) -> None:
    """A pattern matches exactly when no test fails, whatever the event is made of; and a pattern
    that covers another matches what the other matches."""
    random_ = random.Random(seed)
    kinds: set[tuple[bool, bool]] = set()
    for _ in rounds(100, 300):
        wide, narrow = random_pattern(random_), random_pattern(random_)
        if random_.random() < 0.5:
            narrow |= wide
        one, other = json.dumps(wide), json.dumps(narrow)
        filters = [parse(text, "eventbridge") for text in (one, other)]
        is_covering = covers(values_wanted(one), values_wanted(other))
        for _ in range(4):
            event = {name: random_value(random_) for name in "abc"}
            verdicts = [filter_.matches(event) for filter_ in filters]
            found = filters[0].explain(event)
            assert found.matched == verdicts[0]
            assert (not found.boxes[0].failed) == verdicts[0]
            again = parse(filters[0].sql()).explain(event)
            assert {test.term: test.passed for test in again.boxes[0].tests} == {
                test.term: test.passed for test in found.boxes[0].tests
            }
            assert not is_covering or verdicts[0] or not verdicts[1], (one, other, event)
            kinds.add((is_covering, verdicts[1]))
    assert len(kinds) == 4


def test_doctor(run: Run, write: Write) -> None:
    rules = [
        {"id": "wide", "filter": {"source": ["aws.ec2", "aws.s3"]}},
        {"id": "narrow", "filter": {"source": ["aws.s3"], "detail": {"n": [5]}}},
        {"id": "again", "filter": {"source": ["aws.s3", "aws.ec2"]}},
        {"id": "slow", "filter": {"detail": {"w": [{"wildcard": "*x*"}]}}},
        {"id": "other", "filter": {"source": ["aws.s3"]}, "subscriber": "ana"},
    ]
    file = write("rules.json", json.dumps(rules, indent=2))
    done = run("doctor", file, "--dialect", "eventbridge", "--json")
    assert done.code == 1
    found = {one["id"]: one for one in done.records[0]["findings"]}
    assert {id_: one["kind"] for id_, one in found.items()} == {
        "narrow": "covered", "again": "duplicate", "slow": "residual-only",
    }  # fmt: skip
    assert found["narrow"]["other"]["id"] == "wide"
    assert found["slow"]["fields"] == ['detail.w: [{"wildcard":"*x*"}]']
    shown = run("doctor", file, "--dialect", "eventbridge").out
    assert "detail.w" in shown
    assert "event_pattern" not in shown


@pytest.mark.parametrize(
    ("pattern", "other", "expected"),
    [
        ({"a": [1, 2]}, {"a": [1], "b": [1]}, True),
        ({"a": [1]}, {"a": [1, 2]}, False),
        ({"a": [1], "b": [1]}, {"a": [1]}, False),
        ({"a.b": [1]}, {"a": {"b": [1]}}, False),
        ({"$or": [{"a": [1]}, {"b": [1]}]}, {"$or": [{"a": [1]}, {"b": [1]}], "c": [1]}, True),
        ({"$or": [{"a": [1]}, {"b": [1]}]}, {"a": [1]}, False),  # not by the fields alone
    ],
)
def test_what_fields_show(pattern: Any, other: Any, expected: bool) -> None:
    assert covers(*(values_wanted(json.dumps(one)) for one in (pattern, other))) is expected
