"""`tidings explain --implications` and `tidings graph --bdd`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from tests.cli.conftest import Run

FILTERS = ["x = 3 AND y > 1 AND y < 4 OR x = 5", "x = 2 AND y = 3 OR x > 4 AND y > 2 OR z > 4"]


@pytest.fixture
def two(tmp_path: Path) -> str:
    path = tmp_path / "two.txt"
    path.write_text("\n".join(FILTERS))
    return str(path)


def test_implications_are_explained(run: Run, two: str) -> None:
    event = '{"x": 5, "y": 3, "z": 1}'
    done = run("explain", "--filters", two, "--implications", "--event", event, "--json")
    assert done.code == 0
    found = json.loads(done.out)
    assert {one["id"]: one["matched"] for one in found["results"]} == {1: True, 2: True}
    assert {one["test"] for one in found["evaluated"]} == {"x = 2", "x = 3", "x = 5", "y > 2"}
    assert found["inferred"] == [{"test": "x > 4", "outcome": True, "filter": 2, "from": 1}]
    assert found["node_steps"] == 4


def test_implications_need_a_file_of_filters(run: Run, two: str) -> None:
    done = run("explain", "--filter", "x = 1", "--implications", "--event", "{}")
    assert done.code == 2
    assert "--filters FILE" in done.err
    done = run("explain", "--filters", two, "--id", "1", "--implications", "--event", "{}")
    assert done.code == 2


def test_a_filter_that_is_split_has_one_result(run: Run, tmp_path: Path) -> None:
    wide = " AND ".join(f"(a{n} = 1 OR b{n} = 1)" for n in range(12))
    path = tmp_path / "wide.txt"
    path.write_text(f"{wide}\na0 = 1 OR b0 = 1\n")
    for missing, want in ((None, True), (3, False)):
        event = {f"a{n}": 1 for n in range(12) if n != missing}
        done = run("explain", "--filters", str(path), "--implications", "--json",
                   "--event", json.dumps(event))  # fmt: skip
        found = json.loads(done.out)
        assert {one["id"]: one["matched"] for one in found["results"]} == {1: want, 2: True}


def test_diagrams_are_shown_with_their_edges(run: Run, two: str) -> None:
    done = run("graph", two, "--bdd", "--json")
    assert done.code == 0
    rows: list[dict[str, Any]] = [json.loads(line) for line in done.out.splitlines()]
    tests = {row["node"]: row.get("test", row.get("result")) for row in rows if "node" in row}
    edges = [(tests[row["from"]], tests[row["to"]]) for row in rows if "from" in row]
    assert edges == [("y > 1 AND y < 4", "z > 4"), (True, "y > 2"), ("y = 3", False)]
    shown = run("graph", two, "--bdd")
    assert "y = 3  ->  does not match" in shown.out


def test_diagrams_are_drawn(run: Run, two: str, tmp_path: Path) -> None:
    picture = tmp_path / "two.svg"
    assert run("graph", two, "--bdd", "--svg", str(picture)).code == 0
    root = ElementTree.fromstring(picture.read_text("utf-8"))
    kinds = [one.get("class") for one in root.iter("{http://www.w3.org/2000/svg}path")]
    assert kinds.count("implies") == 3
    assert kinds.count("high") == kinds.count("low") == 10
