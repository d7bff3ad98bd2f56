"""`tidings convert`: filters of one language in another."""

from __future__ import annotations

import json

from tests.cli.conftest import Run, Write

import tidings

PATTERNS = """\
# three patterns
{"source": ["aws.ec2"], "detail": {"state": ["running", "stopped"]}}

{"a": [{"anything-but": "x"}], "b": [{"exists": false}]}
{"n": [{"numeric": [">", 1]}], "a": [{"wildcard": "x*y"}]}
"""
SQL = [
    "source = 'aws.ec2' AND detail.state IN ('running', 'stopped')",
    "NOT isabsent(a) AND (a = 'x') IS NOT TRUE AND isabsent(b)",
    "n > 1 AND a LIKE 'x%y'",
]
TYPES = "source=string,detail.state=string,a=string,b=string,n=double"


def test_single_values_are_plain_sql(run: Run, write: Write) -> None:
    path = write("p.txt", PATTERNS)
    result = run("convert", "--from", "eventbridge", "--to", "sql", "--single", path)
    assert result.code == 0
    assert result.out.splitlines() == SQL


def test_declared_attributes_say_what_is_single(run: Run, write: Write) -> None:
    path = write("p.txt", PATTERNS)
    result = run("convert", "--from", "eventbridge", "--types", TYPES, path)
    assert result.code == 0
    assert result.out.splitlines() == SQL


def test_what_sql_cannot_say_is_refused_with_its_line(run: Run, write: Write) -> None:
    path = write("p.txt", PATTERNS)
    result = run("convert", "--from", "eventbridge", "--to", "sql", path)
    assert result.code == 2
    assert result.out == ""
    assert result.err.splitlines()[0] == (
        f"error: {path}, line 2: sql can't express a test of a value that may be a list or a "
        "struct: detail.state, source; declare the types with --types, or use --single"
    )
    assert "line 5" in result.err


def test_what_is_no_pattern_is_refused_and_the_rest_goes_on(run: Run, write: Write) -> None:
    path = write("p.txt", '{"a": 1}\n{"a": [1]}\n')
    result = run("convert", "--from", "eventbridge", "--single", path)
    assert result.code == 2
    assert result.out == "a = 1\n"
    assert f"{path}, line 1, character 7: $.a: found 1, expected an array" in result.err


def test_programs_get_a_file_of_filters(run: Run, write: Write) -> None:
    records = [
        {"id": "x", "filter": '{"a": ["\\u0007"]}', "subscriber": "me"},
        {"id": 7, "filter": '{"a": ["é"]}'},
    ]
    path = write("p.jsonl", "".join(json.dumps(record) + "\n" for record in records))
    args = ("convert", "--from", "eventbridge", "--single", path)
    found = run(*args, "--json").records
    assert [record["id"] for record in found] == ["x", 7]
    assert found[0]["subscriber"] == "me"
    assert tidings.parse(found[0]["filter"]) == tidings.parse("a = '\\u0007'")
    assert found[1] == {"id": 7, "filter": "a = 'é'"}
    shown = run(*args)
    assert shown.code == 2
    assert "line 1: found characters that can't be shown; use --json" in shown.err


def test_sql_to_sql_is_the_same_filter(run: Run, write: Write) -> None:
    path = write("f.sql", "b = 2 AND NOT (a <= 1)\n")
    result = run("convert", "--from", "sql", "--to", "sql", path)
    assert result.out == "b = 2 AND NOT (a <= 1)\n"


def test_unknown_languages_are_refused(run: Run, write: Write) -> None:
    path = write("f.sql", "a = 1\n")
    assert "--from: found 'xpath', expected one of cesql, cloudevents, eventbridge, sql" in (
        run("convert", "--from", "xpath", path).err
    )
    result = run("convert", "--from", "sql", "--to", "eventbridge", path)
    assert result.code == 2
    assert "--to: found 'eventbridge', expected one of sql" in result.err


def test_a_pattern_inside_sql_is_written_out_where_values_are_single(
    run: Run, write: Write
) -> None:
    path = write("f.sql", """x = 1 AND event_pattern('{"a": ["y", {"prefix": "z"}]}')\n""")
    result = run("convert", "--from", "sql", "--single", path)
    assert result.out == "x = 1 AND (a = 'y' OR startswith(a, 'z'))\n"
