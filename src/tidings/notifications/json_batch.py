"""Decode lines of JSON into columns.

    lines ──msgspec, one by one──> records ──columns──> arrays ──> Decoded.good
              | refused               | a value that does not fit
              `──> json_rows.py <─────'
                     | valid after all            | a reason
                     `──> records                 `──> Decoded.reasons

Each line is parsed by itself, so that an unclosed bracket can't swallow the next line. A line that
msgspec accepts costs nothing more; only a line that it refuses is read again by the careful reader.
Lines are read in pieces of `PIECE`, whose records stay in the processor's cache until the columns
are built.

Speed, by tests/notifications/test_speed.py: 65,536 lines of 20 fields, three of them times, on one
core of a shared machine, in thousands of lines per second of processor time. With no bad line, or
one, 320 to 450; with numbers in quotes, 140; with every line truncated, 190.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import lru_cache
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from tidings.filters import Attributes
from tidings.filters.language import Path
from tidings.model import NotificationError
from tidings.notifications.decoded import Decoded, assemble
from tidings.notifications.json_rows import BadLine, read_line
from tidings.notifications.null_marks import mark_nulls
from tidings.notifications.records import Record
from tidings.notifications.schema import Unknown, is_closed, schema_of

Decode = Callable[[Any], Any]

PIECE = 4096
# null lines cause AttributeError or TypeError
_REFUSALS = (msgspec.DecodeError, ValueError, RecursionError, AttributeError, TypeError)


def decode_json(
    lines: pa.Array,
    declared: pa.Schema | Attributes,
    *,
    unknown: Unknown = "refuse",
    nulls: Collection[Path] = (),
) -> Decoded:
    """Decode JSON objects, given as strings or bytes, into a batch of the declared types.

    Values are read as by `Attributes.read`; an absent field is null. An undeclared field makes its
    row bad, or is left out, as `unknown` says. No row raises: each is good or has a reason.

    The batch has marks for the attributes in `nulls` (see model.NULL_MARK), which tell an explicit
    null from an absent field; `without_marks` removes them.
    """
    schema = schema_of(declared)
    if nulls:
        schema = mark_nulls(schema, frozenset(nulls))
    reader = _reader_of(schema, is_closed(unknown))
    rows = _to_bytes(lines)
    bad: dict[int, str] = {}
    pieces = [
        reader.read(rows.slice(start, PIECE), start, bad)
        for start in range(0, max(len(rows), 1), PIECE)
    ]
    arrays = [pa.concat_arrays(chunks) for chunks in zip(*pieces, strict=True)]
    return assemble(arrays, schema, len(rows), bad)


def _to_bytes(lines: Any) -> Any:
    if isinstance(lines, pa.ChunkedArray):
        lines = lines.combine_chunks()
    kind = getattr(lines, "type", None)
    if kind is not None and pa.types.is_dictionary(kind):
        return _to_bytes(lines.dictionary_decode())
    if kind in (pa.string(), pa.binary(), pa.string_view(), pa.binary_view()):
        return lines.cast(pa.binary())
    if kind in (pa.large_string(), pa.large_binary()):
        return lines.cast(pa.large_binary())
    found = type(lines).__name__ if kind is None else f"an array of {kind}"
    raise NotificationError(f"found {found}, expected an Arrow array of strings or bytes")


class _Reader:
    """The record class and the decoder of a schema, created once."""

    def __init__(self, schema: pa.Schema, closed: bool) -> None:
        self.closed = closed
        self.record = Record(schema, closed=closed)
        self.decode: Decode = msgspec.json.Decoder(self.record.struct).decode

    def read(self, piece: Any, start: int, bad: dict[int, str]) -> list[Any]:
        """The columns of the good lines. Reasons for the others go into `bad`, under their
        positions in the whole input; the piece begins at `start`."""
        lines = piece.to_pylist()
        # msgspec does not check that skipped fields are UTF-8, so that is done here
        decode = self.decode if self.closed or _is_utf8(piece) else self._decode_utf8
        records, refused = self._read_records(lines, decode)
        arrays, wrong = self.record.columns(records)
        if len(wrong):
            kept = [at for at in range(len(lines)) if at not in refused]
            for at in wrong.tolist():
                refused[kept[at]] = self._find_reason(lines[kept[at]])
            keep = np.ones(len(records), np.bool_)
            keep[wrong] = False
            arrays = [array.filter(pa.array(keep)) for array in arrays]
        bad.update((start + at, reason) for at, reason in refused.items())
        return arrays

    def _read_records(self, lines: list[Any], decode: Decode) -> tuple[list[Any], dict[int, str]]:
        try:
            return list(map(decode, lines)), {}
        except _REFUSALS:
            pass  # at least one line is bad: read them one by one
        records: list[Any] = []
        refused: dict[int, str] = {}
        for at, line in enumerate(lines):
            try:
                records.append(self._read_record(line, decode))
            except BadLine as reason:
                refused[at] = str(reason)
        return records, refused

    def _read_record(self, line: Any, decode: Decode) -> Any:
        try:
            return decode(line)
        except _REFUSALS:
            return read_line(line, self.record, closed=self.closed)

    def _decode_utf8(self, line: bytes) -> Any:
        return self.decode(line.decode())

    def _find_reason(self, line: bytes | None) -> str:
        try:
            read_line(line, self.record, closed=self.closed)
        except BadLine as reason:
            return str(reason)
        return "a value does not fit its declared type"


def _is_utf8(lines: Any) -> bool:
    try:
        lines.cast(pa.large_string())
    except pa.ArrowInvalid:
        return False
    return True


@lru_cache(maxsize=64)
def _reader_of(schema: pa.Schema, closed: bool) -> _Reader:
    return _Reader(schema, closed)
