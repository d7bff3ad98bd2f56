"""The examples of preprocessors run, and print what they say they do."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tidings import ContentGraph, parse
from tidings.graph.picture import draw

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
SCRIPTS = sorted((EXAMPLES / "preprocessors").glob("*.py"))


def test_there_are_some() -> None:
    names = {path.stem for path in SCRIPTS}
    assert {"baseball", "networks", "dates", "regions", "classes"} <= names


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_an_example_prints_what_it_says(path: Path, tmp_path: Path) -> None:
    said = ast.get_docstring(ast.parse(path.read_text())) or ""
    assert "\nPrints:\n\n" in said
    done = subprocess.run(
        [sys.executable, "-W", "error", str(path)],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
        cwd=tmp_path,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert done.stderr == ""
    assert done.stdout.rstrip("\n") == said.partition("\nPrints:\n\n")[2]


def test_the_picture_on_the_pages_is_that_of_the_file() -> None:
    """`tidings graph docs/examples/delays.txt --svg docs/graph.svg` writes it anew."""
    lines = (EXAMPLES / "delays.txt").read_text().splitlines()
    places = {parse(line): number for number, line in enumerate(lines, 1)}
    drawn = draw(ContentGraph(places), "delays.txt", lambda node: f"id {places[node.filter]}")
    assert (EXAMPLES.parent / "graph.svg").read_text() == drawn
