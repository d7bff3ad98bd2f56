"""`tidings explain`: the reason, and an exit code that says whether it matches."""

from __future__ import annotations

import pytest
from tests.cli.conftest import Run, Write

FILTER = "origin = 'EWR' AND delay > 60"


def test_a_match_ends_with_0_and_the_rest_with_1(run: Run) -> None:
    late = run("explain", "--filter", FILTER, "--event", '{"origin": "EWR", "delay": 75}')
    assert late.code == 0
    assert "FAIL" not in late.out
    near = run("explain", "--filter", FILTER, "--event", '{"origin": "EWR", "delay": 45}')
    assert near.code == 1
    assert "does not match: expected delay > 60, but delay is 45" in near.out


def test_programs_get_stable_fields(run: Run) -> None:
    [record] = run("explain", "--filter", FILTER, "--event", '{"delay": 75}', "--json").records
    assert record == {
        "filter": FILTER,
        "matched": False,
        "reason": "failed: expected origin = 'EWR', but origin is absent",
        "alternatives": [
            [
                {"term": "delay", "expected": "delay > 60", "actual": "75", "passed": True},
                {"term": "origin", "expected": "origin = 'EWR'", "actual": "absent",
                 "passed": False},
            ]
        ],
    }  # fmt: skip


def test_the_nearest_alternative_comes_first(run: Run) -> None:
    text = "a = 1 AND b = 1 AND c = 1 OR a = 2 AND b = 2 OR a = 3 OR b = 4 AND d = 1"
    result = run("explain", "--filter", text, "--event", '{"a": 1, "b": 1, "c": 1}')
    assert result.code == 0
    assert "alternative 1 of 4: all tests passed" in result.out
    assert "and 1 more alternative (--all shows them)" in result.out
    every = run("explain", "--filter", text, "--event", '{"a": 1, "b": 1, "c": 1}', "--all")
    assert "alternative 4 of 4" in every.out


@pytest.mark.parametrize(
    ("text", "said"), [("a > 5 AND a < 3", "can never match"), ("true", "matches")]
)
def test_filters_without_tests(run: Run, text: str, said: str) -> None:
    assert said in run("explain", "--filter", text, "--event", "{}").out


def test_from_files(run: Run, write: Write) -> None:
    filters = write("f.jsonl", '{"id": 7, "filter": "a = 1"}\n{"id": "x", "filter": "a = 2"}\n')
    events = write("e.csv", "a\n1\n2\n")
    args = ["explain", "--filters", filters, "--events", events]
    assert run(*args, "--id", "7").code == 0
    assert run(*args, "--id", "x").code == 1
    assert run(*args, "--id", "x", "--row", "1").code == 0


def test_types_are_applied(run: Run) -> None:
    args = ["explain", "--filter", "day > '2024-01-01'", "--event", '{"day": "2024-05-01"}']
    assert run(*args, "--types", "day=date").code == 0


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ([], "either --filter FILTER"),
        (["--filter", "a = 1", "--filters", "f.txt"], "either --filter FILTER"),
        (["--filters", "FILE", "--event", "{}"], "--id ID"),
        (["--filters", "FILE", "--id", "9", "--event", "{}"], "no filter with the id '9'"),
        (["--filter", "a = 1"], "either --event JSON"),
        (["--filter", "a = 1", "--event", "{"], "event, character 2"),
        (["--filter", "a = 1", "--event", "[]"], "found a list"),
        (["--filter", "a = 1", "--events", "EVENTS", "--row", "5"], "no event 5"),
        (["--filter", "a >", "--event", "{}"], "filter, character 4"),
    ],
)
def test_questions_that_are_not_clear(run: Run, write: Write, args: list[str], said: str) -> None:
    files = {"FILE": write("f.txt", "a = 1"), "EVENTS": write("e.jsonl", "{}")}
    result = run("explain", *(files.get(arg, arg) for arg in args))
    assert result.code == 2
    assert said in result.err
