"""Infers the types of a file's columns, from its first rows or its schema."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from tidings.cli.common.arrow import load_pyarrow
from tidings.cli.common.command_errors import BadInput
from tidings.cli.common.input_files import STDIN, format_of, kind_of, name_of, read_objects
from tidings.model import DataType, look_at_rows, type_of_arrow, types_of_fields

MOST_ROWS = 10_000
FORMATS = ("json", "csv", "parquet", "arrow")


class LookedAt(msgspec.Struct, frozen=True):
    """The types of the columns of a file, and reasons for the columns that have none."""

    format: str
    types: dict[str, DataType]
    reasons: dict[str, str]


def look_at_file(path: str, given: str | None = None, rows: int = MOST_ROWS) -> LookedAt:
    """Infer types from up to `rows` rows of JSON, or from the schema of CSV, Parquet or Arrow."""
    ending = Path(path).suffix.lower()
    if given is None and ending in (".arrow", ".feather", ".ipc"):
        given = "arrow"
    form = format_of(path, given, FORMATS, "--format")
    if form == "json":
        guess = look_at_rows(islice(_read_json(path), rows))
        if not guess.fields:
            raise BadInput(f"{name_of(path)}: found no fields, expected JSON objects")
        found = {name: one.type for name, one in guess.fields.items()}
        return LookedAt(
            form,
            {name: kind for name, kind in found.items() if kind is not None},
            {name: guess.fields[name].reason for name, kind in found.items() if kind is None},
        )
    schema = _schema_of(path, form)
    fields = [(field.name, field.type) for field in schema]
    types, reasons = types_of_fields(fields, type_of_arrow)
    return LookedAt(form, types, reasons)


def _read_json(path: str) -> Iterator[dict[str, Any]]:
    """The objects of JSON lines, or of one JSON array."""
    if path != STDIN:
        with suppress(OSError, UnicodeDecodeError), Path(path).open("rb") as file:
            start = file.read(4096).removeprefix(b"\xef\xbb\xbf").lstrip()
            if start[:1] == b"[":
                yield from _read_array(path)
                return
    for _, row in read_objects(path):
        yield row


def _read_array(path: str) -> Iterator[dict[str, Any]]:
    try:
        values = msgspec.json.decode(Path(path).read_bytes().removeprefix(b"\xef\xbb\xbf"))
    except (ValueError, RecursionError) as problem:
        raise BadInput(f"{path}: this is not a JSON array: {problem}") from None
    for at, value in enumerate(values):
        if not isinstance(value, dict):
            raise BadInput(f"{path}, element {at}: found {kind_of(value)}, expected an object")
        yield value


def _schema_of(path: str, form: str) -> Any:
    pa = load_pyarrow()
    if path == STDIN:
        raise BadInput(f"stdin: found {form}, expected JSON or the name of a file")
    try:
        if form == "parquet":
            from pyarrow import parquet

            return parquet.read_schema(path)
        if form == "arrow":
            return _arrow_schema(path)
        from pyarrow import csv

        with csv.open_csv(path) as batches:
            return batches.schema
    except FileNotFoundError:
        raise BadInput(f"{path}: there is no such file") from None
    except IsADirectoryError:
        raise BadInput(f"{path}: found a folder, expected a file") from None
    except (OSError, pa.ArrowException) as problem:
        raise BadInput(f"{path}: this can't be read as {form}: {problem}") from None


def _arrow_schema(path: str) -> Any:
    pa = load_pyarrow()
    with pa.OSFile(path) as file:
        try:
            return pa.ipc.open_file(file).schema
        except pa.ArrowInvalid:
            file.seek(0)
            return pa.ipc.open_stream(file).schema
