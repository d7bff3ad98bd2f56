"""The tests that send SIGINT or SIGHUP pass where whoever started pytest ignores both: `nohup`, a
background job of a shell without job control, many CI systems."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
IGNORED = {"SIGINT", "SIGHUP"}
# `exec` keeps what is ignored, and forgets handlers.
START = f"""
import os, signal, sys
for name in {sorted(IGNORED)}:
    signal.signal(getattr(signal, name), signal.SIG_IGN)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


def ignoring(*words: str) -> list[str]:
    """Words that start Python with these words and with the signals ignored."""
    return [sys.executable, "-c", START, *words]


def list_tests() -> list[str]:
    """The tests of this folder that name one of the signals."""
    found = []
    for path in sorted(Path(__file__).parent.glob("test_*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        for one in tree.body:
            if isinstance(one, ast.FunctionDef) and one.name.startswith("test_"):
                names = {node.attr for node in ast.walk(one) if isinstance(node, ast.Attribute)}
                if names & IGNORED and path != Path(__file__):
                    found.append(f"{path.relative_to(ROOT)}::{one.name}")
    return found


def test_they_are_found() -> None:
    names = {one.rpartition("::")[2] for one in list_tests()}
    assert {"test_ctrl_c_ends_with_130", "test_a_router_ends_with_its_terminal"} <= names


@pytest.mark.parametrize(
    "which",
    ["ctrl_c_ends", pytest.param("", marks=pytest.mark.slow)],
)
@pytest.mark.timeout(900)
def test_they_pass_where_the_signals_are_ignored(tmp_path: Path, which: str) -> None:
    rules = "not slow and not bench and not spark"
    place = str(tmp_path / "tests")
    words = ignoring(
        "-m", "pytest", "-q", "-x", "-m", rules, "-k", which, "-p", "no:cacheprovider",
        "--basetemp", place, *list_tests(),
    )  # fmt: skip
    done = subprocess.run(
        words, cwd=ROOT, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert " passed" in done.stdout
