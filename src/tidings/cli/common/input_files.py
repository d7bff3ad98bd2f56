"""Reads files as lines or JSON objects; errors name the file and the line."""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from tidings.cli.common.command_errors import BadInput
from tidings.filters.language import article
from tidings.model import FilterError, type_of

STDIN = STDOUT = "-"
EXTENSIONS = {
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".csv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".txt": "text",
    ".sql": "text",
}
_BOM = b"\xef\xbb\xbf"


def name_of(path: str) -> str:
    """The name of a file, as messages show it."""
    return "stdin" if path == STDIN else path


def format_of(path: str, given: str | None, formats: tuple[str, ...], option: str) -> str:
    """The given format, else the format of the extension; for stdin, the first of `formats`."""
    expected = ", ".join(formats)
    if given is not None:
        if given not in formats:
            raise BadInput(f"{option}: found '{given}', expected one of {expected}")
        return given
    if path == STDIN:
        return formats[0]
    extension = Path(path).suffix.lower()
    found = EXTENSIONS.get(extension)
    if found not in formats:
        known = ", ".join(ext for ext, name in EXTENSIONS.items() if name in formats)
        ending = f"the extension '{extension}'" if extension else "no extension"
        raise BadInput(f"{path}: found {ending}, expected one of {known}, or {option} {expected}")
    return found


@contextmanager
def open_input(path: str) -> Iterator[BinaryIO]:
    """Open a file, or stdin; raise BadInput if it can't be read or is empty."""
    if path == STDIN:
        yield sys.stdin.buffer
        return
    try:
        file = Path(path).open("rb")  # noqa: SIM115
    except FileNotFoundError:
        raise BadInput(f"{path}: there is no such file") from None
    except IsADirectoryError:
        raise BadInput(f"{path}: found a folder, expected a file") from None
    except PermissionError:
        raise BadInput(f"{path}: you have no permission to read this file") from None
    except OSError as problem:
        raise BadInput(f"{path}: the file can't be opened: {problem.strerror}") from None
    with file:
        status = os.fstat(file.fileno())
        if stat.S_ISREG(status.st_mode) and status.st_size == 0:
            raise BadInput(f"{path}: the file is empty")
        yield file


def read_lines(path: str) -> Iterator[tuple[int, str]]:
    """Yield (number from 1, line with its line break) for each line of a UTF-8 file."""
    with open_input(path) as file:
        for number, raw in enumerate(file, 1):
            line = raw.removeprefix(_BOM) if number == 1 else raw
            try:
                yield number, line.decode()
            except UnicodeDecodeError as bad:
                raise BadInput(
                    f"{name_of(path)}, line {number}, byte {bad.start + 1}: "
                    f"found the byte 0x{line[bad.start]:02x}, expected text in UTF-8"
                ) from None


def read_objects(path: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (line number, object) for each line of a JSON lines file; skip blank lines."""
    for number, line in read_lines(path):
        if not line.isspace():
            yield number, object_of(line.rstrip("\r\n"), f"{name_of(path)}, line {number}")


def object_of(text: str, where: str) -> dict[str, Any]:
    """Parse a JSON object."""
    try:
        value = msgspec.json.decode(text)
    except RecursionError:
        raise BadInput(f"{where}: this JSON is nested too deeply") from None
    except ValueError as problem:
        raise _json_refusal(text, str(problem), where) from None
    if not isinstance(value, dict):
        raise BadInput(
            f'{where}: found {kind_of(value)}, expected a JSON object such as {{"price": 95}}'
        )
    return value


def kind_of(value: object) -> str:
    """The type of a value, in words: `an integer`."""
    return "null" if value is None else article(type_of(value) or type(value).__name__)


def _json_refusal(text: str, reason: str, where: str) -> BadInput:
    """The error for broken JSON; it names the character of the line."""
    found = re.search(r"(?:JSON is malformed: )?(.*) \(byte (\d+)\)", reason)
    at = len(text)
    if found:
        reason = found[1]
        at = len(text.encode()[: int(found[2])].decode(errors="ignore"))
    elif reason == "Input data was truncated":
        reason = "it ends too early"
    return BadInput(
        f"{where}, character {at + 1}: this is not JSON: {reason}; expected one object per line",
        FilterError("", text, at).pointer(),
    )
