"""Reports errors of commands: one paragraph on stderr and an exit code, never a traceback."""

from __future__ import annotations

import contextlib
import functools
import gc
import os
import sys
from collections.abc import Callable
from typing import ParamSpec

import typer

from tidings.cli.common.shutdown import INTERRUPTED, restore_handlers
from tidings.model import FilterError, TidingsError

BAD_INPUT = 2
PIPE_CLOSED = 141  # the exit code in a shell for a program killed by SIGPIPE

Params = ParamSpec("Params")


class BadInput(TidingsError):
    """Unusable input. The message says where the problem is, what was found and what was expected.

    `pointer` has lines that show the faulty text and mark the position, if the position is known.
    """

    def __init__(self, message: str, pointer: str = "") -> None:
        self.pointer = pointer
        super().__init__(message)


def filter_refusal(problem: FilterError, where: str) -> BadInput:
    """The error for a refused filter; `where` is a place such as `filters.txt, line 3`."""
    if not problem.text:
        return BadInput(f"{where}: {problem.reason}")
    place = f"{where}, character {problem.position + 1}"
    return BadInput(f"{place}: {problem.reason}", problem.pointer())


def clean_text(text: str) -> str:
    """Replace characters that could control a terminal."""
    return "".join(c if c.isprintable() else "·" for c in text)


def report(problem: Exception) -> None:
    """Print an error on stderr."""
    label = "error:"
    if sys.stderr.isatty():
        label = typer.style(label, fg="red", bold=True)
    first, *more = str(problem).splitlines() or [""]
    print(f"{label} {clean_text(first)}", file=sys.stderr)
    for line in more:
        print(clean_text(line), file=sys.stderr)
    if isinstance(problem, BadInput):
        for line in problem.pointer.splitlines():
            print(f"    {line}", file=sys.stderr)


def remark(note: str) -> None:
    """Print a note on stderr."""
    label = "note:"
    if sys.stderr.isatty():
        label = typer.style(label, fg="yellow", bold=True)
    print(f"{label} {clean_text(note)}", file=sys.stderr)


def report_errors(command: Callable[Params, int | None]) -> Callable[Params, None]:
    """Wrap a command: exit with the code that it returns, and turn errors into exit codes."""

    @functools.wraps(command)
    def run(*args: Params.args, **kwargs: Params.kwargs) -> None:
        gc.enable()  # the entry point had turned the garbage collector off for the imports
        try:
            with restore_handlers():
                code = command(*args, **kwargs) or 0
                sys.stdout.flush()
        except KeyboardInterrupt:
            code = INTERRUPTED
        except BrokenPipeError:
            _forget_stdout()
            code = PIPE_CLOSED
        except (TidingsError, OSError) as problem:
            report(problem)
            code = BAD_INPUT
        raise typer.Exit(code)

    return run


def _forget_stdout() -> None:
    """Discard stdout: its reader is gone, and flushing its buffer at exit must not fail."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
