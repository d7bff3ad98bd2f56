"""Reads files as lines or JSON objects; errors name the file and the line.

JSON is one object per line, an array of objects, or objects that span several lines. Gzip files are
decompressed as they are read.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import stat
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

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
    ".xml": "xml",
    ".msgpack": "msgpack",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".txt": "text",
    ".sql": "text",
}
PACKED = ".gz"
_BOM = b"\xef\xbb\xbf"
_PACKED_BEGIN = b"\x1f\x8b"
_SPACE = re.compile(r"[ \t\r\n]*")


def name_of(path: str) -> str:
    """The name of a file in messages."""
    return "stdin" if path == STDIN else path


def format_of(path: str, given: str | None, formats: tuple[str, ...], option: str) -> str:
    """The format that is given or, if none is given, the format of the file's extension; for stdin,
    the first of `formats`."""
    expected = ", ".join(formats)
    if given is not None:
        if given not in formats:
            raise BadInput(f"{option}: found '{given}', expected one of {expected}")
        return given
    if path == STDIN:
        return formats[0]
    extension = extension_of(path)
    found = EXTENSIONS.get(extension)
    if found not in formats:
        known = ", ".join(ext for ext, name in EXTENSIONS.items() if name in formats)
        ending = f"the extension '{extension}'" if extension else "no extension"
        raise BadInput(f"{path}: found {ending}, expected one of {known}, or {option} {expected}")
    return found


def extension_of(path: str) -> str:
    """The extension of a file, without the extension of gzip: `.json` for `events.json.gz`."""
    name = Path(path)
    if name.suffix.lower() == PACKED:
        name = name.with_suffix("")
    return name.suffix.lower()


@contextmanager
def open_input(path: str) -> Iterator[BinaryIO]:
    """Open a file, or stdin, and decompress gzip; raise BadInput if the file can't be read or is
    empty."""
    with _open_packed(path) as file:
        if not begins_with(file, _PACKED_BEGIN):
            yield file
            return
        try:
            with gzip.open(file) as unpacked:
                yield cast(BinaryIO, unpacked)
        except (EOFError, zlib.error, gzip.BadGzipFile) as problem:
            said = "it ends too early" if isinstance(problem, EOFError) else str(problem)
            raise BadInput(f"{name_of(path)}: this can't be decompressed: {said}") from None


def begins_with(file: BinaryIO, text: bytes) -> bool:
    """Whether a file begins with these bytes; the position in the file does not change."""
    peek = getattr(file, "peek", None)
    if peek is not None:
        return bytes(peek(len(text))[: len(text)]) == text
    if not file.seekable():
        return False
    begin = file.read(len(text))
    file.seek(-len(begin), os.SEEK_CUR)
    return begin == text


def open_stdin() -> BinaryIO:
    """Open stdin as a separate file object. `sys.stdin` itself is not used: if a thread is still
    reading it when Python exits, Python waits for its lock, and then aborts."""
    try:
        handle = sys.stdin.fileno()
    except (OSError, ValueError):  # stdin is not a real file
        return sys.stdin.buffer
    return open(handle, "rb", closefd=False)


@contextmanager
def _open_packed(path: str) -> Iterator[BinaryIO]:
    if path == STDIN:
        yield open_stdin()
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


def read_objects(path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (place, object) for each object of a JSON file; a place is text such as `line 3`.

    A file with one object per line is read as a stream. A file with an array of objects, or with
    objects that span several lines, is read as a whole.
    """
    name = name_of(path)
    lines = read_lines(path)
    is_first = True
    for number, line in lines:
        if line.isspace():
            continue
        if is_first and (line.lstrip().startswith("[") or _is_begun(line)):
            text = "\n" * (number - 1) + line + "".join(more for _, more in lines)
            yield from _read_whole(text, name)
            return
        is_first = False
        place = f"line {number}"
        yield place, object_of(line.rstrip("\r\n"), f"{name}, {place}")


def spans_lines(path: str) -> bool:
    """Whether a JSON file is an array, or its first object spans several lines."""
    first = next((line for _, line in read_lines(path) if not line.isspace()), "")
    return first.lstrip().startswith("[") or _is_begun(first)


def _is_begun(line: str) -> bool:
    """Whether a JSON object begins in one line and continues in the next."""
    if not line.lstrip().startswith("{"):
        return False
    try:
        msgspec.json.decode(line)
    except RecursionError:
        return False
    except ValueError as problem:
        return str(problem) == "Input data was truncated"
    return False


def _read_whole(text: str, name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The objects of a JSON text: the elements of an array, or one object after another."""
    decoder, count = json.JSONDecoder(), 0
    at = _skip_space(text, 0)
    is_array = text.startswith("[", at)
    if is_array:
        at = _skip_space(text, at + 1)
        is_over = text.startswith("]", at)
    else:
        is_over = at == len(text)
    while not is_over:
        begin = at
        count += 1
        place = f"element {count}" if is_array else f"line {text.count(chr(10), 0, begin) + 1}"
        try:
            _, at = decoder.raw_decode(text, begin)
            # decoded a second time: msgspec refuses NaN, which is not valid JSON
            value = msgspec.json.decode(text[begin:at])
        except RecursionError:
            raise BadInput(f"{name}, {place}: this JSON is nested too deeply") from None
        except json.JSONDecodeError as problem:
            raise _whole_refusal(text, problem.pos, name, problem.msg) from None
        except ValueError as problem:
            raise _whole_refusal(text, begin, name, str(problem)) from None
        yield place, _need_object(value, f"{name}, {place}")
        at = _skip_space(text, at)
        is_over = text.startswith("]", at) if is_array else at == len(text)
        if is_array and not is_over:
            if not text.startswith(",", at):
                raise _whole_refusal(text, at, name, "expected , or ] after an element")
            at = _skip_space(text, at + 1)
    if is_array and _skip_space(text, at + 1) < len(text):
        at = _skip_space(text, at + 1)
        raise _whole_refusal(text, at, name, "expected the end of the file after the array")


def _skip_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    assert found is not None
    return found.end()


def _whole_refusal(text: str, at: int, name: str, reason: str) -> BadInput:
    """The error for invalid JSON at a position in the text."""
    line = text.count("\n", 0, at) + 1
    begin = text.rfind("\n", 0, at) + 1
    end = text.find("\n", at)
    shown = text[begin : len(text) if end < 0 else end].rstrip("\r")
    return BadInput(
        f"{name}, line {line}, character {at - begin + 1}: this is not JSON: {reason}",
        FilterError("", shown, at - begin).pointer(),
    )


def object_of(text: str, where: str) -> dict[str, Any]:
    """Parse a JSON object."""
    try:
        value = msgspec.json.decode(text)
    except RecursionError:
        raise BadInput(f"{where}: this JSON is nested too deeply") from None
    except ValueError as problem:
        raise _json_refusal(text, str(problem), where) from None
    return _need_object(value, where)


def _need_object(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise BadInput(
            f'{where}: found {kind_of(value)}, expected a JSON object such as {{"price": 95}}'
        )
    return value


def kind_of(value: object) -> str:
    """The type of a value, in words: `an integer`."""
    return "null" if value is None else article(type_of(value) or type(value).__name__)


def _json_refusal(text: str, reason: str, where: str) -> BadInput:
    """The error for invalid JSON, with the position in the line."""
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
