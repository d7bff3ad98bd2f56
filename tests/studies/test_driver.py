"""A program that is asked by lines: its answers, and how it fails."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tidings.studies.host.driver import Driver, Unavailable, telling_line

ECHO = "import json, sys\nfor line in sys.stdin: print(json.dumps(line.strip()), flush=True)"


def driver(code: str, scratch: Path) -> Driver:
    return Driver("one", [sys.executable, "-c", code], {}, scratch)


def test_requests_are_answered_in_turn(tmp_path: Path) -> None:
    with driver(ECHO, tmp_path) as echo:
        assert [echo.ask(str, 30, text) for text in ("a", "", "b c")] == ["a", "", "b c"]


def test_one_that_ends_says_why(tmp_path: Path) -> None:
    failing = driver("raise ValueError('no room')", tmp_path)
    with failing, pytest.raises(Unavailable, match="the driver failed: ValueError: no room"):
        failing.ask(str, 30)


def test_one_that_is_slow(tmp_path: Path) -> None:
    with driver("import time; time.sleep(60)", tmp_path) as one, pytest.raises(TimeoutError):
        one.ask(str, 0.1)


@pytest.mark.parametrize(
    ("output", "line"),
    [
        ("", "it printed nothing"),
        ("one\ntwo\n\n", "two"),
        ("fetching\n\x1b[31mError\x1b[0m: no route\nhelp is on a page\n", "Error: no route"),
        ("Exception in thread: Error 1\n\tat Error.java:3\n", "Exception in thread: Error 1"),
        ("Traceback:\n  raise ValueError\nValueError: 3\n", "ValueError: 3"),
        ("x" * 500, "x" * 200),
    ],
)
def test_telling_line(output: str, line: str) -> None:
    assert telling_line(output) == line
