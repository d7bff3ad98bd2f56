"""`tidings graph`: a table and a tree, JSON, and a picture."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

from tests.cli.conftest import Run, Write

FILTERS = (
    '{"id": "a", "filter": "x > 1"}\n{"id": "b", "filter": "x > 5"}\n'
    '{"id": "c", "filter": "NOT (x <= 5)"}\n{"id": "d", "filter": "y = 2"}\n'
)


def test_people_see_layers_and_a_tree(run: Run, write: Write) -> None:
    result = run("graph", write("f.jsonl", FILTERS))
    assert result.code == 0
    rows = [line.split() for line in result.out.splitlines()]
    assert ["0", "2", "2", "1"] in rows
    assert ["1", "1", "2", "0"] in rows
    assert "3 nodes, 1 edge, depth 1" in result.out
    assert "├── 1  x > 1  (1)\n│   └── 2  x > 5  (2)\n└── 3  y = 2  (1)" in result.out


def test_programs_get_nodes_and_edges(run: Run, write: Write) -> None:
    result = run("graph", write("f.jsonl", FILTERS), "--json")
    names = ("node", "filter", "ids", "depth", "parents", "children", "never")
    assert [tuple(record) for record in result.records] == [names] * 3
    assert [tuple(record.values()) for record in result.records] == [
        (1, "x > 1", ["a"], 0, [], [2], False),
        (2, "x > 5", ["b", "c"], 1, [1], [], False),
        (3, "y = 2", ["d"], 0, [], [], False),
    ]


def test_a_picture_is_written(run: Run, write: Write, tmp_path: Path) -> None:
    file, svg = write("f.jsonl", FILTERS), tmp_path / "out.svg"
    result = run("graph", file, "--svg", str(svg))
    assert (result.code, result.out) == (0, f"{svg}: 3 nodes, 1 edge, depth 1\n")
    words = "".join(ET.parse(svg).getroot().itertext())
    assert "2: x > 5\nid b, c\n1 parent, 0 children" in words
    assert len(run("graph", file, "--svg", str(svg), "--json").records) == 3
    assert run("graph", file, "--svg", "-").out == svg.read_text()


def test_many_ids_at_one_node_are_cut(run: Run, write: Write) -> None:
    file = write("f.txt", "x > 1\n" * 50)
    words = "".join(ET.fromstring(run("graph", file, "--svg", "-").out).itertext())
    assert "id 1, 2, 3, 4" in words
    assert ", 20 and 30 more" in words


def test_a_large_file_is_shortened(run: Run, write: Write) -> None:
    file = write("f.txt", "".join(f"x > {n}\n" for n in range(30)) + "y = 1\n" * 2)
    assert "and 10 more layers (--all shows them)" in run("graph", file).out
    whole = run("graph", file, "--all").out
    assert "more" not in whole
    assert all(f"x > {n} " in whole for n in range(30))


def test_what_is_wrong_is_said_in_one_sentence(run: Run, write: Write, tmp_path: Path) -> None:
    file = write("f.txt", "x > 1\n")
    cases = {
        ("graph", write("bad.txt", "x > 1\nx >\n")): "bad.txt, line 2, character 4: found the end",
        ("graph", file, "--svg", file): "this is the file of filters, expected another file",
        ("graph", file, "--svg", str(tmp_path / "no" / "x.svg")): "can't be written: No such file",
        ("graph", file, "--svg", "-", "--json"): "both write to standard output",
        ("graph", file, "--types", "y=integer"): "there is no attribute 'x'",
        ("graph", str(tmp_path / "none.txt")): "there is no such file",
    }
    for args, told in cases.items():
        result = run(*args)
        assert result.code == 2
        assert told in result.err
        assert result.out == ""
    assert Path(file).read_text() == "x > 1\n"


def test_filters_can_come_from_stdin(run: Run) -> None:
    assert run("graph", "-", "--json", stdin="x > 1\n").records[0]["ids"] == [1]
