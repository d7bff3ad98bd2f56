"""What the tests of the command line share: a way to run it, and files to run it on."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer.main
import typer.testing
from typer.testing import CliRunner

from tidings.cli.app import make_app

app = make_app()

# Typer would make all commands again for each that is run, in 0.05 seconds.
typer.testing._get_command = functools.cache(typer.main.get_command)  # type: ignore[attr-defined]


class Result:
    """What a command printed, and its exit code."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @property
    def records(self) -> list[Any]:
        """stdout as JSON lines."""
        return [json.loads(line) for line in self.out.splitlines()]


Run = Callable[..., Result]
Write = Callable[[str, str | bytes], str]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the command line in this process; `stdin` is what it reads there."""
    monkeypatch.setenv("COLUMNS", "100")

    def run(*args: str, stdin: str | bytes | None = None) -> Result:
        done = CliRunner().invoke(app, args, input=stdin, prog_name="tidings")
        if done.exception and not isinstance(done.exception, SystemExit):
            raise done.exception  # the command line must never end with a traceback
        return Result(done.exit_code, done.stdout, done.stderr)

    return run


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a file, and give its path; there may be tokens in it."""

    def write(name: str, content: str | bytes) -> str:
        path = tmp_path / name
        path.touch(0o600)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    return write
