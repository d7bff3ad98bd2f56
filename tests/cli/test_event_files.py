"""Events and filters as people have them: arrays, pretty-printed JSON, gzip, folders, patterns of
file names, standard input; rules whose filters are objects."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Run, Write

EVENTS: list[dict[str, Any]] = [
    {"source": "aws.ec2", "detail": {"state": "running", "tags": ["a", None], "n": 5}},
    {"source": "aws.s3", "detail": {"state": None, "bucket name": "ü"}},
    {"source": "aws.ec2", "detail": {"state": "stopped", "tags": [], "n": 7}},
]
LINES = "".join(f"{json.dumps(one)}\n" for one in EVENTS)
PRETTY = json.dumps(EVENTS, indent=2)
OBJECTS = "\n".join(json.dumps(one, indent=4) for one in EVENTS)
FILTER = "source = 'aws.ec2'"


def ids(run: Run, *words: str, stdin: str | bytes | None = None) -> list[int]:
    """The events that match, by number."""
    done = run("match", "--json", *words, stdin=stdin)
    assert done.code == 0, done.err
    return [one["event"] for one in done.records]


@pytest.fixture
def filters(write: Write) -> str:
    return write("filters.txt", FILTER)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("e.jsonl", LINES),
        ("e.jsonl", f"\n \n{LINES}"),
        ("e.json", json.dumps(EVENTS)),
        ("e.json", PRETTY),
        ("e.json", f"\n\n{PRETTY}\n\n"),
        ("e.json", OBJECTS),
        ("e.json", "\ufeff" + PRETTY),
        ("e.json", PRETTY.replace("\n", "\r\n")),
        ("e.jsonl.gz", gzip.compress(LINES.encode(), mtime=0)),
        ("E.JSON.GZ", gzip.compress(PRETTY.encode(), mtime=0)),
        ("packed.jsonl", gzip.compress(LINES.encode(), mtime=0)),  # whatever it is called
    ],
)
def test_json_in_all_shapes(
    run: Run, write: Write, filters: str, name: str, content: str | bytes
) -> None:
    assert ids(run, "--filters", filters, "--events", write(name, content)) == [0, 2]


@pytest.mark.parametrize(
    "content",
    [
        LINES,
        PRETTY,
        OBJECTS,
        gzip.compress(LINES.encode(), mtime=0),
        gzip.compress(PRETTY.encode(), mtime=0),
    ],
)
def test_standard_input(run: Run, filters: str, content: str | bytes) -> None:
    assert ids(run, "--filters", filters, "--events", "-", stdin=content) == [0, 2]


def test_csv_in_gzip(run: Run, write: Write, filters: str) -> None:
    packed = gzip.compress(b"source,n\naws.s3,1\naws.ec2,2\n")
    assert ids(run, "--filters", filters, "--events", write("e.csv.gz", packed)) == [1]


def test_an_empty_array(run: Run, write: Write, filters: str) -> None:
    assert ids(run, "--filters", filters, "--events", write("e.json", "[]")) == []


def make_folder(folder: Path) -> None:
    (folder / "day=1").mkdir(parents=True)
    (folder / "day=2" / "_temporary").mkdir(parents=True)
    first, second, third = (json.dumps(one) for one in EVENTS)
    (folder / "day=1" / "a.jsonl").write_text(first)
    (folder / "day=1" / "b.json.gz").write_bytes(gzip.compress(f"[{second}]".encode()))
    (folder / "day=2" / "c.jsonl").write_text(third)
    (folder / "day=2" / "notes.md").write_text("no events")
    (folder / "day=2" / ".hidden.json").write_text("no events")
    (folder / "day=2" / "_temporary" / "d.json").write_text("no events")


def test_a_folder_and_patterns(run: Run, filters: str, tmp_path: Path) -> None:
    make_folder(tmp_path / "in")
    given = ("--filters", filters, "--events")
    assert ids(run, *given, str(tmp_path / "in")) == [0, 2]
    assert ids(run, *given, str(tmp_path / "in" / "*" / "[ab].json*")) == [0]
    assert ids(run, *given, str(tmp_path / "in" / "**" / "*.jsonl")) == [0, 1]
    assert (
        run("explain", "--filter", FILTER, "--events", str(tmp_path / "in"), "--row", "2").code == 0
    )
    assert (
        run("explain", "--filter", FILTER, "--events", str(tmp_path / "in"), "--row", "1").code == 1
    )
    nothing = run("match", *given, str(tmp_path / "in" / "*.xml"))
    assert (nothing.code, "no file matches this pattern" in nothing.err) == (2, True)
    (tmp_path / "empty").mkdir()
    empty = run("match", *given, str(tmp_path / "empty"))
    assert "found no events in this folder, expected files with the extension .json," in empty.err


def test_a_file_whose_name_is_a_pattern(run: Run, write: Write, filters: str) -> None:
    assert ids(run, "--filters", filters, "--events", write("e[1].jsonl", LINES)) == [0, 2]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('[{"a": 1}, 5]', "element 2: found an integer, expected a JSON object"),
        ('[{"a": 1},\n {"a": }]', "line 2, character 8: this is not JSON: Expecting value"),
        ('[{"a": 1},]', "line 1, character 11: this is not JSON: "),
        ('[{"a": 1}\n{"a": 2}]', "line 2, character 1: this is not JSON: expected , or ]"),
        ('[{"a": 1}] {"a": 2}', "line 1, character 12: this is not JSON: expected the end of the"),
        ('[{"a": 1}', "this is not JSON: expected , or ] after an element"),
        ('{\n "a": 1\n}\n{\n "a": x\n}', "line 5, character 7: this is not JSON"),
        ('[{"a": NaN}]', "line 1, character 2: this is not JSON"),
        ("[" * 200_000, "nested too deeply"),
        (
            gzip.compress(LINES.encode(), mtime=0)[:-12],
            "this can't be decompressed: it ends too early",
        ),
        (
            gzip.compress(LINES.encode(), mtime=0)[:30] + b"damage" * 9,
            "this can't be decompressed: ",
        ),
    ],
)
def test_what_is_refused(
    run: Run, write: Write, filters: str, content: str | bytes, message: str
) -> None:
    done = run("match", "--filters", filters, "--events", write("e.json", content))
    assert done.code == 2
    assert message in done.err
    assert "Traceback" not in done.err


# -- files of filters ----------------------------------------------------------------------------

PATTERN = {"source": ["aws.ec2"], "detail": {"n": [{"numeric": [">", 5]}]}}
RULES = [{"id": "big", "filter": PATTERN, "subscriber": "ops"},
         {"id": "s3", "filter": json.dumps({"source": ["aws.s3"]})}]  # fmt: skip


@pytest.mark.parametrize(
    "content",
    [
        "".join(f"{json.dumps(one)}\n" for one in RULES),
        json.dumps(RULES),
        json.dumps(RULES, indent=2),
        "\n".join(json.dumps(one, indent=2) for one in RULES),
        gzip.compress(json.dumps(RULES).encode(), mtime=0),
    ],
)
def test_filters_that_are_objects(run: Run, write: Write, content: str | bytes) -> None:
    words = ("--filters", write("rules.json", content), "--dialect", "eventbridge")
    done = run("match", *words, "--events", write("e.json", PRETTY), "--json")
    assert [(one["event"], one["ids"]) for one in done.records] == [(1, ["s3"]), (2, ["big"])]
    event = json.dumps(EVENTS[2])
    assert run("explain", *words, "--id", "big", "--event", event).code == 0


@pytest.mark.parametrize("indent", [None, 2])
def test_a_rule_by_itself(run: Run, write: Write, indent: int | None) -> None:
    """A file with the pattern and nothing else."""
    rule = write("rule.json", json.dumps(PATTERN, indent=indent))
    words = ("--filters", rule, "--dialect", "eventbridge", "--events", write("e.json", PRETTY))
    assert run("match", *words, "--json").records == [{"event": 2, "ids": [1]}]
    refused = run("match", "--filters", rule, "--events", write("e.json", PRETTY))
    assert refused.code == 2
    assert "line 1: found source, detail; expected id, filter and optionally" in refused.err
    for command in ("check", "doctor", "graph"):
        given = ("--file", rule) if command == "check" else (rule,)
        assert run(command, *given, "--dialect", "eventbridge").code == 0


def test_an_object_needs_a_dialect_that_is_written_in_json(run: Run, write: Write) -> None:
    words = ("--filters", write("rules.json", json.dumps(RULES)), "--events", write("e.json", "[]"))
    done = run("match", *words)
    assert done.code == 2
    assert "element 1: the filter is an object, expected text; objects are for --dialect " \
        "cloudevents or eventbridge" in done.err  # fmt: skip
    assert "there is no dialect 'latin'" in run("match", *words, "--dialect", "latin").err
