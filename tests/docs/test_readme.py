"""The figures of the README are those of docs/performance.md, with the commands that make them."""

from __future__ import annotations

import re
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
FIGURE = re.compile(r"\d[\d,.]*\d|\d")


def test_figures_are_those_that_were_measured() -> None:
    readme = (TOP / "README.md").read_text()
    section = readme.split("\n## Against peers\n")[1].split("\n## ")[0]
    measured = (TOP / "docs" / "performance.md").read_text()
    rows = [line for line in section.splitlines() if line.startswith("| ")]
    figures = {one for row in rows for one in FIGURE.findall(row)}
    known = {*FIGURE.findall(measured)}
    assert len(figures) > 10
    assert figures - known == set()
    commands = re.findall(r"`((?:benchmarks|tidings bench)[^`]+)`", section)
    assert len(commands) == 4
    assert [one for one in commands if f"`{one}`" not in measured] == []
