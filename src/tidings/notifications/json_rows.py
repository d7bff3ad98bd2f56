"""The careful reader of one line of JSON. It returns a record, or says what is wrong with the line.

The careful reader is slow, and is used only for lines that msgspec refused. The careful reader
follows the schema into the line, and keeps the parts that it has not reached as raw text, so that a
reason can quote them:

    {"delay": "12", "user": {"city": 7}}
     delay ── "12" ── 12
     user ── {"city": 7} ── city ── 7          column 'user.city': found 7, expected a string

If a name occurs twice, its last value counts, as in Spark and in Python's `json`.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import msgspec

from tidings.notifications.record_classes import Record, Slot
from tidings.notifications.schema import describe_path, describe_type, describe_unknown_column
from tidings.notifications.texts import fit

Place = tuple[str | int, ...]

_BOM = b"\xef\xbb\xbf"
_HALF_PAIR = re.compile(rb"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])")
_NULL = msgspec.Raw(b"null")
_AS_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_AS_ELEMENTS = msgspec.json.Decoder(list[msgspec.Raw])
_AS_VALUE = msgspec.json.Decoder()
_AS_DECIMAL = msgspec.json.Decoder(Decimal | None)  # keeps all digits
_REFUSALS = (msgspec.DecodeError, ValueError, RecursionError)  # all errors that msgspec raises


class BadLine(Exception):
    """The reason why a line can't be decoded."""


def read_line(line: bytes | None, record: Record, *, closed: bool) -> Any:
    """The line as an instance of the record; raises BadLine if it can't be decoded. With `closed`,
    unknown names are refused.

    Dates and timestamps are checked against their declared types, but remain strings.
    """
    if line is None:
        raise BadLine("the row is null, expected an object")
    line = line.removeprefix(_BOM)
    if not line.strip():
        raise BadLine("the line is empty, expected an object")
    try:
        line.decode()
        fields = _AS_FIELDS.decode(line)
    except UnicodeDecodeError as problem:
        byte = line[problem.start]
        raise BadLine(f"found 0x{byte:02x} at byte {problem.start}, expected UTF-8") from None
    except msgspec.ValidationError:
        raise BadLine(f"found {_shorten(line)}, expected an object") from None
    except _REFUSALS as problem:
        raise BadLine(_describe_broken(line, problem)) from None
    return _read_fields(fields, record, (), closed)


def _describe_broken(line: bytes, problem: Exception) -> str:
    if isinstance(problem, RecursionError):
        return f"the object of {len(line):,} bytes is nested too deeply"
    text = str(problem).removeprefix("JSON is malformed: ")
    if text == "Input data was truncated":
        half = _HALF_PAIR.search(line)
        # msgspec expects the other half of a surrogate pair after the end of the line
        if half and line.rstrip().endswith(b"}"):
            found = f"found {half.group().decode()} at byte {half.start()}"
            return f"{found}, half of a surrogate pair; expected both halves"
        text = f"the line ends after {len(line):,} bytes"
    return f"the line is not JSON: {text}, expected an object"


def _shorten(raw: bytes) -> str:
    text = raw[:240].decode(errors="replace").strip()
    return f"{text[:60]}..." if len(text) > 60 else text


def _read_fields(fields: dict[str, Any], record: Record, path: Place, closed: bool) -> Any:
    if closed and not fields.keys() <= record.slots.keys():
        unknown = next(name for name in fields if name not in record.slots)
        raise BadLine(describe_unknown_column((*path, unknown), record.slots))
    return record.make(
        [
            slot.missing
            if slot.nullable and name not in fields
            else _read_slot(fields.get(name, _NULL), slot, (*path, name), closed)
            for name, slot in record.slots.items()
        ]
    )


def _read_slot(raw: Any, slot: Slot, path: Place, closed: bool) -> Any:
    value: Any
    try:
        if slot.record is not None or slot.key is not None:
            value = None if bytes(raw) == b"null" else _AS_FIELDS.decode(raw)
        elif slot.name == "decimal":
            value = _AS_DECIMAL.decode(raw)
        elif slot.element is not None:
            value = None if bytes(raw) == b"null" else _AS_ELEMENTS.decode(raw)
        else:
            value = _AS_VALUE.decode(raw)
        if value is None:
            if slot.nullable:
                return None
            raise ValueError("null")
        if slot.record is None and slot.element is None:
            read = fit(value, slot.kind, slot.name)
            return value if slot.name in ("date", "timestamp") else read
    except _REFUSALS:
        found = f"found {_shorten(bytes(raw))}, expected {describe_type(slot.kind)}"
        raise BadLine(f"column '{describe_path(path)}': {found}") from None
    if slot.record is not None:
        return _read_fields(value, slot.record, path, closed)
    assert slot.element is not None
    if slot.key is not None:
        _check_keys(value, slot.key, path)
        return {
            name: _read_slot(one, slot.element, (*path, name), closed)
            for name, one in value.items()
        }
    return [_read_slot(one, slot.element, (*path, at), closed) for at, one in enumerate(value)]


def _check_keys(value: dict[str, Any], slot: Slot, path: Place) -> None:
    for name in value:
        try:
            fit(name, slot.kind, slot.name)
        except ValueError:
            raise BadLine(
                f"column '{describe_path(path)}': found the key '{name[:60]}', expected "
                f"{describe_type(slot.kind)}"
            ) from None
