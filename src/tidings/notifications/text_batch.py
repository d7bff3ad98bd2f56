"""Decode columns of text, as Spark's CSV reader returns them, into columns of the declared types.

    batch     delay   day          _corrupt_record
              "12"    2013-01-31   null               12    2013-01-31
              "late"  2013-01-31   null               bad: column 'delay': found 'late', ...
              "3"     null         3,"x               bad: the row could not be split

Spark splits a file into strings. This module parses them by the rules for JSON, so that a value
means the same in both formats. A cell is null if Spark read it as null.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidings.filters import Attributes
from tidings.model import AttributesError, Extra, NotificationError, need_extra
from tidings.notifications.decoded import Decoded, Positions, assemble
from tidings.notifications.schema import (
    describe_path,
    describe_type,
    describe_unknown_column,
    schema_of,
    type_name,
)
from tidings.notifications.texts import read_texts


def decode_text_columns(
    batch: pa.RecordBatch,
    declared: pa.Schema | Attributes,
    corrupt: str | None = None,
    *,
    extra: Extra = "refuse",
) -> Decoded:
    """Decode a batch of strings into a batch of the declared types. A missing column is null
    in all rows.

    An undeclared column raises NotificationError if `extra` is "refuse"; otherwise it is left out.
    Rows in which the column `corrupt` is not null are bad; that column must exist. No row raises.
    """
    schema, closed = schema_of(declared), need_extra(extra) == "refuse"
    names = [name for name in batch.schema.names if name != corrupt]
    for name in names:
        if closed and name not in schema.names:
            raise NotificationError(describe_unknown_column((name,), schema.names))
        if names.count(name) > 1:
            raise NotificationError(f"the column '{name}' occurs more than once, expected once")
    bad = {} if corrupt is None else _find_corrupt_rows(batch, corrupt)
    arrays = []
    for field in schema:
        values, wrong = _read_column(batch, field)
        for at, reason in wrong.items():
            bad.setdefault(at, reason)
        arrays.append(values)
    if bad:
        keep = np.ones(batch.num_rows, np.bool_)
        keep[list(bad)] = False
        arrays = [array.filter(pa.array(keep)) for array in arrays]
    return assemble(arrays, schema, batch.num_rows, bad)


def _find_corrupt_rows(batch: pa.RecordBatch, corrupt: str) -> dict[int, str]:
    at = batch.schema.get_field_index(corrupt)
    if at < 0:  # without this column, rows that could not be split look like rows of nulls
        raise NotificationError(describe_unknown_column((corrupt,), batch.schema.names))
    column, _ = _decode_text(batch.column(at).cast(pa.large_binary()))
    return {
        row: f"the row could not be split into columns: found {_quote(column[row].as_py())}, "
        "expected one value for each column"
        for row in np.flatnonzero(np.asarray(batch.column(at).is_valid())).tolist()
    }


def _quote(text: str | None) -> str:
    if text is None:
        return "bytes that are not UTF-8"
    return f"'{text[:60]}...'" if len(text) > 60 else f"'{text}'"


def _read_column(batch: pa.RecordBatch, field: Any) -> tuple[Any, dict[int, str]]:
    """The values of a column, and for each row whose text can't be read, the reason."""
    if type_name(field.type) in ("list", "struct", "map"):
        raise AttributesError(
            f"'{field.name}' is {describe_type(field.type)}, expected a type that can be read "
            "from text"
        )
    at = batch.schema.get_field_index(field.name)
    column = pa.nulls(batch.num_rows, pa.string()) if at < 0 else batch.column(at)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kinds = (pa.string(), pa.large_string(), pa.string_view(), pa.null())
    if column.type not in kinds:
        raise NotificationError(
            f"column '{describe_path((field.name,))}' has the type {column.type}, expected string"
        )
    texts, undecoded = _decode_text(column.cast(pa.large_binary()))
    values, wrong = read_texts(texts, field.type)
    what = f"column '{describe_path((field.name,))}': found"
    told = {
        row: f"{what} {_quote(texts[row].as_py())}, expected {describe_type(field.type)}"
        for row in wrong.tolist()
    }
    told |= dict.fromkeys(undecoded.tolist(), f"{what} bytes that are not UTF-8, expected text")
    if not field.nullable:
        for row in np.flatnonzero(np.asarray(values.is_null())).tolist():
            told.setdefault(row, f"{what} null, expected {describe_type(field.type)}")
    return values, told


def _decode_text(raw: Any) -> tuple[Any, Positions]:
    """Decode values of bytes as UTF-8; invalid values become null, and their positions are
    returned."""
    try:
        return raw.cast(pa.large_string()), np.zeros(0, np.int64)
    except pa.ArrowInvalid:
        broken = [value is not None and not _is_utf8(value) for value in raw.to_pylist()]
        return pc.if_else(pa.array(broken), None, raw).cast(pa.large_string()), np.flatnonzero(
            broken
        )


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True
