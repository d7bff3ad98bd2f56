"""Runs a program that measures on request: it reads a line and answers with a line of JSON."""

from __future__ import annotations

import contextlib
import queue
import re
import subprocess
import threading
from pathlib import Path
from typing import IO, TypeVar

import msgspec

from tidings.model import EnvironmentProblem

Answer = TypeVar("Answer")

_TELLING = re.compile(r"(?i)error|forbidden|denied|could not|cannot|unable|not found|no such")
_ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


class Unavailable(EnvironmentProblem):
    """A program can't be measured."""


class Driver:
    """A driver program. The first request starts it; the end of the `with` block stops it."""

    def __init__(
        self, system: str, command: list[str], environment: dict[str, str], scratch: Path
    ) -> None:
        self.system = system
        self._command = command
        self._environment = environment
        self._errors = scratch / f"{system.replace(' ', '-')}.stderr"
        self._process: subprocess.Popen[bytes] | None = None
        self._lines: queue.Queue[bytes] = queue.Queue()

    def __enter__(self) -> Driver:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def ask(self, answer: type[Answer], patience: float, request: str = "") -> Answer:
        """Send a line, and read one. Raises TimeoutError after `patience` seconds."""
        process = self._process or self._start()
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # the program exited, so its output ends too
            process.stdin.write(request.encode() + b"\n")
            process.stdin.flush()
        try:
            line = self._lines.get(timeout=patience)
        except queue.Empty:
            raise TimeoutError from None
        try:
            return msgspec.json.decode(line, type=answer)
        except msgspec.DecodeError as problem:
            said = telling_line(self._errors.read_text(errors="replace")) if not line else problem
            raise Unavailable(f"the driver failed: {said}") from None

    def peak_bytes(self) -> int | None:
        """The peak memory of the program, or None if it is not known."""
        with contextlib.suppress(OSError, AttributeError, IndexError, ValueError):
            status = Path(f"/proc/{self._process.pid}/status").read_text()  # type: ignore[union-attr]
            return int(status.split("VmHWM:")[1].split()[0]) * 1024
        return None

    def stop(self) -> None:
        """Kill the program."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout):
                with contextlib.suppress(OSError):
                    if pipe is not None:
                        pipe.close()
            self._process = None

    def _start(self) -> subprocess.Popen[bytes]:
        with self._errors.open("wb") as errors:
            try:
                self._process = subprocess.Popen(
                    self._command, env=self._environment, stderr=errors,
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                )  # fmt: skip
            except OSError as problem:
                raise Unavailable(f"{self._command[0]} can't be run: {problem.strerror}") from None
        assert self._process.stdout is not None
        threading.Thread(target=self._read, args=(self._process.stdout,), daemon=True).start()
        return self._process

    def _read(self, stream: IO[bytes]) -> None:
        with contextlib.suppress(OSError, ValueError):
            for line in stream:
                self._lines.put(line)
        self._lines.put(b"")


def telling_line(output: str) -> str:
    """The most informative line of a failed program's output. Indented lines, as in stack traces,
    are ignored."""
    lines = [line.rstrip() for line in _ESCAPES.sub("", output).splitlines() if line.strip()]
    telling = [line for line in lines if not line[0].isspace() and _TELLING.search(line)]
    return (telling or lines[-1:] or ["it printed nothing"])[0].strip()[:200]
