"""`tidings check`: the parts of a filter, for people and for programs."""

from __future__ import annotations

from tests.cli.conftest import Run, Write

import tidings

WIDE = " AND ".join(f"(a{n} = 1 OR b{n} = 1)" for n in range(30))


def test_people_see_the_parts(run: Run) -> None:
    text = "origin = 'EWR' AND NOT (delay <= 60) AND tail LIKE 'N%U_'"
    result = run("check", text)
    assert result.code == 0
    assert "delay > 60 AND origin = 'EWR'" in result.out
    assert "delay, origin, tail" in result.out
    assert "one by one" in result.out
    assert (
        tidings.parse("delay > 60 AND origin = 'EWR' AND tail LIKE 'N%U_'").key.hex() in result.out
    )


def test_programs_get_stable_fields(run: Run) -> None:
    [record] = run("check", "b = 2 OR a > 1", "--json").records
    assert record == {
        "id": 1,
        "filter": "b = 2 OR a > 1",
        "canonical": "a > 1 OR b = 2",
        "identity": tidings.parse("a > 1 OR b = 2").key.hex(),
        "wide": False,
        "boxes": [
            [{"term": "a", "set": "a > 1", "residual": False}],
            [{"term": "b", "set": "b = 2", "residual": False}],
        ],
        "residuals": [],
        "attributes": ["a", "b"],
        "warnings": [],
        "note": "",
    }


def test_a_wide_filter_is_shown_by_its_clauses(run: Run) -> None:
    [record] = run("check", WIDE, "--json").records
    assert record["wide"]
    assert len(record["boxes"]) == 1
    assert len(record["boxes"][0]) == 30
    assert "wide" in run("check", WIDE).out


def test_tests_of_each_box_spell_the_filter(run: Run) -> None:
    text = "(a > 1 OR b IN (1, 2)) AND c LIKE 'x%' AND d IS NULL"
    [record] = run("check", text, "--json").records
    boxes = [" AND ".join(f"({test['set']})" for test in box) for box in record["boxes"]]
    assert tidings.parse(" OR ".join(f"({box})" for box in boxes)) == tidings.parse(text)


def test_several_filters_and_a_file(run: Run, write: Write) -> None:
    path = write("f.csv", "id,filter\nx,c = 3\n")
    result = run("check", "a = 1", "b = 2", "--file", path, "--json")
    assert [record["id"] for record in result.records] == [1, 2, "x"]


def test_a_refused_filter_does_not_stop_the_others(run: Run, write: Write) -> None:
    path = write("f.txt", "a = 1\nb >\nc = 3\n")
    result = run("check", "--file", path, "--json")
    assert result.code == 2
    assert [record["id"] for record in result.records] == [1, 3]
    assert "line 2" in result.err


def test_oddities_are_said(run: Run) -> None:
    assert "never-true: the filter can never match: no value of a is both > 5 and < 3" in run(
        "check", "a > 5 AND a < 3"
    ).out.replace("\n", " ")
    assert "always-true: every event matches it" in run("check", "true").out
    assert "residual-only: no index can help" in run("check", "a RLIKE 'x'").out


def test_names_beside_the_declared_ones(run: Run) -> None:
    args = ["check", "price > 10 AND volume > 5", "--types", "price=integer"]
    assert run(*args).code == 2
    assert run(*args, "--others").code == 0


def test_brackets_and_escapes_are_shown_as_they_are(run: Run) -> None:
    result = run("check", "a = '[bold]x[/bold]\x1b[31m'")
    assert "[bold]x[/bold]·[31m" in result.out
    assert "\x1b" not in result.out
