"""Decode lines of JSON into columns.

    lines ──msgspec, one by one──> records ──columns──> arrays ──> Decoded.good
              | refused               | a value that does not fit
              `──> json_rows.py <─────'
                     | valid after all            | a reason
                     `──> records                 `──> Decoded.reasons

Each line is parsed by itself, so that an unclosed bracket can't swallow the next line. A line that
msgspec accepts needs no further work; only a line that it refuses is read again by the careful
reader. The decoder refuses lines with undeclared fields as well. Unless `extra` is "refuse", such a
line is then read again without these fields, and extra_fields.py collects them. Lines are read in
pieces of `PIECE` lines, so that the records of a piece stay in the processor's cache until the
columns are built.

Speed, in thousands of lines per second of processor time on one core of a shared machine: 320 to
450 if at most one line is bad, 140 if numbers are in quotes, 190 if every line is truncated.
tests/notifications/test_speed.py measured these figures with 65,536 lines of 20 fields each, of
which three are dates or timestamps.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import lru_cache
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from tidings.filters import Attributes
from tidings.model import Extra, NotificationError, Path, need_extra
from tidings.notifications.decoded import Decoded, assemble
from tidings.notifications.extra_fields import ExtraFields, find_extra, with_extra
from tidings.notifications.json_rows import BadLine, read_line
from tidings.notifications.null_marks import mark_nulls
from tidings.notifications.record_classes import Record
from tidings.notifications.schema import schema_of

Decode = Callable[[Any], Any]

PIECE = 4096
# for a null line, decoding raises AttributeError or TypeError
_REFUSALS = (msgspec.DecodeError, ValueError, RecursionError, AttributeError, TypeError)


def decode_json(
    lines: pa.Array,
    declared: pa.Schema | Attributes,
    *,
    extra: Extra = "refuse",
    nulls: Collection[Path] = (),
) -> Decoded:
    """Decode JSON objects, given as strings or bytes, into a batch of the declared types.

    Values are read as `Attributes.read` reads them; an absent field is null. If `extra` is
    "refuse", an undeclared field makes its row bad. With any other value of `extra`, such a field
    is counted and left out of the batch. Unless `extra` is "drop", `Decoded.extra` keeps it. No row
    raises an error: each row is good or has a reason why it is bad.

    The batch has marks for the attributes in `nulls` (see model.NULL_MARK), which distinguish an
    explicit null from an absent field; `without_marks` removes them.
    """
    schema = schema_of(declared)
    if nulls:
        schema = mark_nulls(schema, frozenset(nulls))
    reader = _reader_of(schema, need_extra(extra) == "refuse")
    rows = _to_bytes(lines)
    bad: dict[int, str] = {}
    extras: dict[int, ExtraFields] = {}
    pieces = [
        reader.read(rows.slice(start, PIECE), start, bad, extras)
        for start in range(0, max(len(rows), 1), PIECE)
    ]
    arrays = [pa.concat_arrays(chunks) for chunks in zip(*pieces, strict=True)]
    return with_extra(assemble(arrays, schema, len(rows), bad), extras, kept=extra != "drop")


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
    """The record class and the decoder of a schema. They are created only once."""

    def __init__(self, schema: pa.Schema, closed: bool) -> None:
        self.closed = closed
        self.record = Record(schema, closed=True)
        self.decode: Decode = msgspec.json.Decoder(self.record.struct).decode
        self.lenient = None if closed else Record(schema, closed=False)
        if self.lenient is not None:
            self._decode_lenient: Decode = msgspec.json.Decoder(self.lenient.struct).decode

    def read(
        self, piece: Any, start: int, bad: dict[int, str], extras: dict[int, ExtraFields]
    ) -> list[Any]:
        """The columns of the good lines. The reasons for bad lines are stored in `bad`, by position
        in the whole input, and undeclared fields in `extras`; `start` is the position of the first
        line of the piece."""
        lines = piece.to_pylist()
        records, refused, others = self._read_records(lines)
        arrays, wrong = self.record.columns(records)
        if len(wrong):
            kept = [at for at in range(len(lines)) if at not in refused]
            for at in wrong.tolist():
                refused[kept[at]] = self._find_reason(lines[kept[at]])
            keep = np.ones(len(records), np.bool_)
            keep[wrong] = False
            arrays = [array.filter(pa.array(keep)) for array in arrays]
        bad.update((start + at, reason) for at, reason in refused.items())
        extras.update((start + at, one) for at, one in others.items() if at not in refused)
        return arrays

    def _read_records(
        self, lines: list[Any]
    ) -> tuple[list[Any], dict[int, str], dict[int, ExtraFields]]:
        try:
            return list(map(self.decode, lines)), {}, {}
        except _REFUSALS:
            pass  # at least one line is bad or has undeclared fields: read lines one by one
        records: list[Any] = []
        refused: dict[int, str] = {}
        extras: dict[int, ExtraFields] = {}
        for at, line in enumerate(lines):
            try:
                records.append(self.decode(line))
                continue
            except _REFUSALS:
                pass
            try:
                records.append(self._read_refused(line))
            except BadLine as reason:
                refused[at] = str(reason)
                continue
            found = None if self.lenient is None else find_extra(line, self.lenient)
            if found is not None:
                extras[at] = found
        return records, refused, extras

    def _read_refused(self, line: Any) -> Any:
        """The record of a line that the decoder refused."""
        if self.lenient is not None:
            try:  # msgspec does not check that skipped fields are valid UTF-8, but `decode` does
                return self._decode_lenient(line.decode())
            except _REFUSALS:
                pass
        return read_line(line, self.lenient or self.record, closed=self.closed)

    def _find_reason(self, line: bytes | None) -> str:
        try:
            read_line(line, self.record, closed=self.closed)
        except BadLine as reason:
            return str(reason)
        return "found a value that does not fit its declared type"


@lru_cache(maxsize=64)
def _reader_of(schema: pa.Schema, closed: bool) -> _Reader:
    return _Reader(schema, closed)
