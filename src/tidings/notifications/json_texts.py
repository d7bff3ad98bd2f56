"""Encode rows as payloads: JSON objects such as a publisher would write for the same data.

    columns    id: 7   place: null   at: 2013-01-01     extra: {"zone": "EU"}
    text       {"id": 7, "at": "2013-01-01", "zone": "EU"}

A null field is left out, because an absent field is read as null. A null in a list remains, because
the position of an element matters. Decimals are numbers, times are ISO 8601, bytes are base64. NaN
and infinities, which JSON does not have, become null. A table with a single column of bytes is not
JSON: its values are the payloads.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pyarrow as pa

_encode = msgspec.json.Encoder(decimal_format="number").encode


def encode_rows(rows: pa.RecordBatch, extra: str | None = None) -> list[bytes]:
    """Each row as a JSON object; its fields are the columns. The column `extra` contains further
    fields, as the text of a JSON object or null; they are added to the object."""
    names = [name for name in rows.schema.names if name != extra]
    if len(names) == 1 and _is_binary(rows.schema.field(names[0]).type):
        return [value or b"" for value in rows.column(names[0]).to_pylist()]
    columns = [_values(rows.column(name)) for name in names]
    texts = [None] * rows.num_rows if extra is None else rows.column(extra).to_pylist()
    found: list[bytes] = []
    for at, text in enumerate(texts):
        row = {
            name: column[at]
            for name, column in zip(names, columns, strict=True)
            if column[at] is not None
        }
        found.append(_encode(row if text is None else join_fields(row, msgspec.json.decode(text))))
    return found


def join_fields(declared: Any, more: Any) -> Any:
    """Add the undeclared fields of a value, from `Decoded.extra`, to its declared fields."""
    if more is None:
        return declared
    if isinstance(declared, Mapping) and isinstance(more, Mapping):
        out = dict(declared)
        for name, value in more.items():
            out[name] = join_fields(out.get(name), value) if name in out else value
        return out
    if isinstance(declared, list) and isinstance(more, list):
        return [join_fields(one, other) for one, other in zip(declared, more, strict=True)]
    return more if declared is None else declared


def _is_binary(kind: Any) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _values(column: Any) -> list[Any]:
    values: list[Any] = column.to_pylist(maps_as_pydicts="strict")
    return [strip_nulls(one) for one in values] if pa.types.is_nested(column.type) else values


def strip_nulls(value: Any) -> Any:
    """The value without the null fields of its structs."""
    if isinstance(value, Mapping):
        return {name: strip_nulls(one) for name, one in value.items() if one is not None}
    return [strip_nulls(one) for one in value] if isinstance(value, list) else value
