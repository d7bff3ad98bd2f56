"""Runs the commands of a console block, as a reader would, and compares what they print.

A plain `tidings ...` runs in this process: to start Python and import everything takes longer than
most commands, and a Spark session takes many seconds. Commands with pipes, redirections or
variables, and all others, run in a shell; a row of them shares one.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import itertools
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from tests.cli.command_tree import GROUPS

# What a console block may run; `make` and `pip` are shown and not run.
RUN = re.compile(r"(tidings|cat|echo|head|printf)\b")
NEXT_COMMAND = "<next command>"
SETTINGS = {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}


def steps_of(text: str) -> list[tuple[str, str]]:
    """(command, output) pairs; a command goes on where its line ends with a backslash."""
    steps: list[tuple[str, str]] = []
    going_on = False
    for line in text.splitlines():
        if line.startswith("$ "):
            steps.append((line[2:], ""))
        elif going_on:
            steps[-1] = (f"{steps[-1][0]}\n{line.removeprefix('> ')}", "")
        else:
            steps[-1] = (steps[-1][0], f"{steps[-1][1]}{line}\n")
        going_on = line.endswith("\\") and not steps[-1][1]
    return steps


def problems_of_block(text: str, folder: Path) -> list[str]:
    """Run the commands of a block in a folder."""
    steps = [step for step in steps_of(text) if RUN.match(step[0])]
    printed = [*run_commands([command for command, _ in steps], folder)]
    checker = doctest.OutputChecker()
    problems = []
    for (command, expected), got in zip(steps, printed, strict=False):
        want, have = _trimmed(expected), _trimmed(got)
        if not checker.check_output(want, have, doctest.ELLIPSIS):
            problems.append(f"$ {command}\n--- expected\n{want}--- printed\n{have}")
    if len(printed) != len(steps):
        problems.append(f"only {len(printed)} of {len(steps)} commands were run")
    return problems


def run_commands(commands: list[str], folder: Path) -> Iterator[str]:
    """What each command prints; ends early if a shell does."""
    code = 0
    for is_plain, group in itertools.groupby(commands, lambda one: plain_words(one) is not None):
        some = [*group]
        if is_plain:
            for command in some:
                text, code = _run_here(plain_words(command) or [], folder)
                yield text
        else:
            texts, code = _run_in_shell(some, code, folder)
            yield from texts
            if len(texts) < len(some):
                return


def plain_words(command: str) -> list[str] | None:
    """The arguments of a `tidings` that needs no shell; None for everything else."""
    if not command.startswith("tidings ") or "$" in command or "`" in command:
        return None
    lexer = shlex.shlex(command.replace("\\\n", " "), posix=True, punctuation_chars=True)
    lexer.commenters = ""
    words = [*lexer]
    if any(set(word) <= set("();<>|&") for word in words if word):
        return None
    return words[1:]


class _Pipe(io.RawIOBase):
    """Where stdout and stderr meet."""

    def __init__(self) -> None:
        super().__init__()
        self.data = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.data += data
        return len(data)


def _run_here(words: list[str], folder: Path) -> tuple[str, int]:
    """Run a command. Its output is in the order of a pipe: stdout is kept back until it is flushed,
    stderr until the end of the line."""
    pipe = _Pipe()
    stdout = io.TextIOWrapper(io.BufferedWriter(pipe), "utf-8")
    stderr = io.TextIOWrapper(io.BufferedWriter(pipe), "utf-8", line_buffering=True)
    code: int | str | None = 0
    with (
        mock.patch.dict(os.environ, SETTINGS),
        mock.patch.multiple(sys, stdin=io.StringIO(), stdout=stdout, stderr=stderr),
        contextlib.chdir(folder),
    ):
        try:
            GROUPS[""](words, prog_name="tidings")
        except SystemExit as end:
            code = end.code
        finally:
            stdout.flush()
            stderr.flush()
    assert code is None or isinstance(code, int), code
    return pipe.data.decode(), code or 0


def _run_in_shell(commands: list[str], code: int, folder: Path) -> tuple[list[str], int]:
    # One shell for all, so that `echo $?` says how the command before it ended.
    script = f"(exit {code})\n" + "".join(
        f"{command}\ncode=$?; echo '{NEXT_COMMAND}'; (exit $code)\n" for command in commands
    )
    programs = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    answer = subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        env={**os.environ, **SETTINGS, "PATH": programs},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=240,
    )
    return answer.stdout.split(f"{NEXT_COMMAND}\n")[:-1], answer.returncode


def _trimmed(text: str) -> str:
    """Without spaces at the ends of lines and empty lines at the end."""
    return "\n".join(line.rstrip() for line in text.splitlines()).rstrip("\n") + "\n"
