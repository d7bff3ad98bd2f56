"""Bad input: in every case, the exit code is 2, and one paragraph says where the problem is, what
was found and what was expected."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings, strategies as st
from tests.cli.conftest import Run, Write

from tidings.cli.common.command_errors import clean_text

GOOD_FILTERS = "a = 1\n"
GOOD_EVENTS = '{"a": 1}\n'

# name, content, what the error says
FILTER_FILES = [
    ("f.txt", "a = 1\nb >", ["line 2, character 4", "found the end", "expected"]),
    ("f.txt", "  a = = 1", ["line 1, character 7", "found '='", "      ^"]),
    ("f.txt", b"a = 1\nb = '\xff'", ["line 2, byte 6", "0xff", "UTF-8"]),
    ("f.txt", "", ["the file is empty"]),
    ("f.txt", "# nothing\n\n", ["found no filter"]),
    ("f.jsonl", '{"id": 1, "filter": "a = 1"}\n{"id": 2', ["line 2, character 9", "not JSON"]),
    ("f.jsonl", "[1]", ["element 1", "found an integer", "expected a JSON object"]),
    ("f.jsonl", "null", ["line 1", "found null"]),
    ("f.jsonl", '{"id": 1}', ["line 1", "found id", "expected id, filter"]),
    ("f.jsonl", "{}", ["line 1", "found nothing"]),
    ("f.jsonl", '{"id": 1, "filter": 5}', ["line 1", "the filter is an integer", "expected text"]),
    ("f.jsonl", '{"id": [], "filter": "a = 1"}', ["line 1", "the id is a list"]),
    ("f.jsonl", '{"id": true, "filter": "a = 1"}', ["line 1", "the id is a boolean"]),
    ("f.jsonl", '{"id": 1, "filter": "a >"}', ["line 1, character 4"]),
    ("f.jsonl", '{"id": 1, "filter": "a = 1"}\n\n{"id": "1", "filter": "a = 2"}',
     ["line 3", "the id '1' is already used", "line 1"]),
    ("f.jsonl", "[" * 5000, ["element 1", "nested too deeply"]),
    ("f.csv", "id,text\n1,a = 1\n", ["line 1", "found id, text", "expected id, filter"]),
    ("f.csv", "id,filter\n1,a = 1,x\n", ["line 2", "found 3 fields, expected 2"]),
    ("f.csv", 'id,filter\n1,"a = 1" x\n', ["line 2", "not CSV"]),
    ("f.csv", 'id,filter\n1,"a = 1\n', ["line 2", "not CSV"]),
    ("f.csv", "id,filter\n1,\n", ["line 2", "the filter is null"]),
    ("f.csv", "id,filter\n1,a = 1\n2,a >\n", ["line 3, id 2, character 4"]),
    ("f.csv", "id,filter\n1,a = 1\n1,a = 2\n", ["line 3", "the id '1' is already used", "line 2"]),
    ("f.csv", "id,filter\n", ["found no filter"]),
    ("f.parquet", "PAR0", ["can't be read as Parquet"]),
    ("f.xml", "<a/>", ["the extension '.xml'", "--filters-format"]),
    ("f", "a = 1", ["no extension", "--filters-format"]),
]  # fmt: skip

EVENT_FILES = [
    ("e.jsonl", '{"a": 1}\n{"a": }', ["line 2, character 7", "not JSON", "          ^"]),
    ("e.jsonl", '{"ä": 1, x}', ["line 1, character 10"]),
    ("e.jsonl", "7", ["line 1", "found an integer", "expected a JSON object"]),
    ("e.jsonl", b'{"a": "\xe9"}', ["line 1, byte 8", "0xe9", "UTF-8"]),
    ("e.jsonl", "", ["the file is empty"]),
    ("e.csv", "", ["the file is empty"]),
    ("e.csv", "a,b\n1,2\n3\n", ["can't be read as CSV", "Expected 2 columns, got 1"]),
    ("e.csv", b"a\n\xff\n", ["the column 'a'", "UTF-8"]),
    ("e.csv", "a,a\n1,2\n", ["the column 'a' occurs twice"]),
    ("e.parquet", "", ["the file is empty"]),
    ("e.parquet", "a,b\n1,2\n", ["can't be read as Parquet"]),
    ("e.txt", "a = 1", ["the extension '.txt'", "--format"]),
]

# options of `tidings check`, what the error says
OPTIONS = [
    (["a >"], ["filter, character 4", "found the end", "    a >\n       ^"]),
    (["a = 1", "b >"], ["filter 2, character 4"]),
    ([], ["nothing to check"]),
    (["a = 1", "--dialect", "cobol"], ["no dialect 'cobol'", "sql"]),
    (["a = 1", "--types", "a"], ["expected name=type"]),
    (["a = 1", "--types", "a=itn"], ["the type 'itn'", "integer"]),
    (["a = 1", "--types", "a=integer,b"], ["found 'b'", "expected name=type"]),
    (["a = 1", "--types", "a=integer,a=double"], ["declared twice"]),
    (["a = 1", "--types", "a..b=integer"], ["a field in it is empty"]),
    (["prize > 5", "--types", "price=double"], ["no attribute 'prize'", "did you mean price"]),
    (["--file", "f.txt", "--filters-format", "xml"], ["found 'xml'", "text, json, csv, parquet"]),
]

# name, content of a file for --types, what the error says
TYPE_FILES = [
    ("t.json", "", ["the file is empty"]),
    ("t.json", '{"a": ', ["can't be read as JSON"]),
    ("t.json", "[]", ["can't be read as JSON", 'with their types, such as {"price": "double"}']),
    ("t.json", '{"a": 5}', ["found 5", "expected a type"]),
    ("t.json", '{"a": "itn"}', ["the type 'itn'"]),
    ("t.json", "{}", ["found no attribute"]),
    ("t.toml", "a = ", ["can't be read as TOML", 'with their types, such as price = "double"']),
    ("t.toml", b"a = '\xff'", ["line 1, byte 6", "UTF-8"]),
    ("t.yaml", "a: integer", [".json or .toml"]),
]


def assert_paragraph(err: str, file: str, expected: list[str]) -> None:
    """One paragraph, which names the file and says what is expected of it; at most a pointer."""
    lines = err.splitlines()
    assert lines[0].startswith("error: ")
    assert file in lines[0]
    assert len(lines) in (1, 3)
    assert "\n\n" not in err
    assert all(part in err for part in expected), err


@pytest.mark.parametrize(("name", "content", "expected"), FILTER_FILES)
@pytest.mark.parametrize("command", ["doctor", "match", "explain", "check"])
def test_files_of_filters(
    run: Run, write: Write, command: str, name: str, content: str | bytes, expected: list[str]
) -> None:
    path = write(name, content)
    events = write("good.jsonl", GOOD_EVENTS)
    args = {
        "doctor": [path],
        "match": ["--filters", path, "--events", events],
        "explain": ["--filters", path, "--id", "none", "--events", events],
        "check": ["--file", path],
    }[command]
    result = run(command, *args)
    if command == "explain" and "character" in expected[0] and "JSON" not in result.err:
        expected = ["no filter with the id 'none'"]  # only the one that is asked for is parsed
    assert result.code == 2
    assert_paragraph(result.err, path, expected)


@pytest.mark.parametrize(("name", "content", "expected"), EVENT_FILES)
@pytest.mark.parametrize("json", [(), ("--json",)])
def test_files_of_events(
    run: Run,
    write: Write,
    name: str,
    content: str | bytes,
    expected: list[str],
    json: tuple[str, ...],
) -> None:
    path = write(name, content)
    filters = write("good.txt", GOOD_FILTERS)
    result = run("match", "--filters", filters, "--events", path, *json)
    assert result.code == 2
    assert_paragraph(result.err, path, expected)


@pytest.mark.parametrize(("args", "expected"), OPTIONS)
def test_options(run: Run, args: list[str], expected: list[str]) -> None:
    result = run("check", *args)
    assert result.code == 2
    assert_paragraph(result.err, "", expected)


@pytest.mark.parametrize(("name", "content", "expected"), TYPE_FILES)
def test_files_of_types(
    run: Run, write: Write, name: str, content: str | bytes, expected: list[str]
) -> None:
    path = write(name, content)
    result = run("check", "a = 1", "--types", path)
    assert result.code == 2
    assert_paragraph(result.err, path, expected)


@pytest.mark.parametrize("extension", ["txt", "jsonl", "csv", "parquet"])
def test_a_missing_file_and_a_folder(run: Run, tmp_path: Path, extension: str) -> None:
    path = tmp_path / f"filters.{extension}"
    assert_paragraph(run("doctor", str(path)).err, str(path), ["there is no such file"])
    path.mkdir()
    assert_paragraph(run("doctor", str(path)).err, str(path), ["found a folder"])


def test_events_that_do_not_fit_their_types(run: Run, write: Write) -> None:
    filters = write("f.txt", "at > '2024-01-01'")
    lines = write("e.jsonl", '{"at": "2024-05-01"}\n\n{"at": "soon"}\n')
    table = write("e.csv", "at\n2024-05-01\nsoon\n")
    for events, place in ((lines, "line 3"), (table, "event 1")):
        result = run(
            "match", "--filters", filters, "--events", events, "--types", "at=date", "--json"
        )
        assert result.code == 2
        assert result.records == [{"event": 0, "ids": [1]}]
        assert_paragraph(result.err, events, [place, "attribute 'at'", "'soon' is not a date"])


def test_both_inputs_from_stdin(run: Run) -> None:
    result = run("match", "--filters", "-", "--events", "-", stdin="")
    assert result.code == 2
    assert "both stdin" in result.err


def test_parquet_from_stdin(run: Run, write: Write) -> None:
    filters = write("f.txt", GOOD_FILTERS)
    result = run("match", "--filters", filters, "--events", "-", "--format", "parquet", stdin="")
    assert result.code == 2
    assert_paragraph(result.err, "stdin", ["expected the name of a file"])


def test_escapes_do_not_reach_the_terminal(run: Run) -> None:
    result = run("check", "a = \x1b[31m")
    assert result.code == 2
    assert "\x1b" not in result.err
    assert clean_text("a\x1b[31m\nb") == "a·[31m·b"


def test_all_that_is_refused_is_listed(run: Run, write: Write) -> None:
    path = write("f.txt", "a >\nb = 1\nb >\n")
    assert run("check", "--file", path).err.count("found the end") == 2
    for command in ("doctor", "graph"):
        told = run(command, path).err
        assert told.count("found the end") == 2
        assert told.endswith("error: 2 of 3 filters are refused\n")


NOISE = st.one_of(
    st.binary(max_size=60),
    st.text(max_size=60).map(lambda text: text.encode("utf-8", "surrogatepass")),
    st.text('{}[]":,\\ud8ae1-\n\r', max_size=60).map(str.encode),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(NOISE, st.sampled_from(["text", "json", "csv", "parquet"]))
@example(b"PAR1\x15\x04\x15\x00PAR1", "parquet")
@example(b'{"a": "\\ud800"}', "json")
@example(b'{"a": 1e999}', "json")
@example(b"a\n\x00\n", "csv")
def test_noise_is_refused_or_read(run: Run, write: Write, noise: bytes, form: str) -> None:
    """Whatever a file holds, the command ends by itself; `run` would raise a traceback."""
    path = write("noise", noise)
    good = write("good.txt", "a IS NOT NULL")
    assert run("doctor", path, "--filters-format", form).code in (0, 1, 2)
    if form != "text":
        result = run("match", "--filters", good, "--events", path, "--format", form)
        assert result.code in (0, 2)
