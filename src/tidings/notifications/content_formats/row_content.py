"""Decodes the row of a pipeline into attributes. A row is a JSON object, together with the types
that JSON does not have.

    columns   at: timestamp   lines: list<struct<sku: string, price: decimal(10, 2)>>   id: integer
    types     {"at": "time", "lines": [{"price": "decimal"}]}
    JSON      {"at": "2013-01-01T05:00:00Z", "lines": [{"sku": "a", "price": 1.10}], "id": 7}
    read      at: a datetime, price: Decimal("1.10")

In `types`, an object represents a struct, and gives the types of its fields; a list with one type
represents a list or a map, and gives the type of its elements or values. Everything that `types`
does not mention is read as JSON. A date becomes midnight in UTC, and a time without a zone is taken
as UTC, as in filters.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import msgspec
import pyarrow as pa
from pyarrow import types as kinds

from tidings.model import NotificationError

TIME, DECIMAL = "time", "decimal"
Types = Any  # the name of a type, a list with one type, or an object that maps names to types

_as_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_as_elements = msgspec.json.Decoder(list[msgspec.Raw]).decode
_as_decimal = msgspec.json.Decoder(Decimal).decode  # keeps all digits
_as_text = msgspec.json.Decoder(str).decode
_as_value = msgspec.json.Decoder().decode


def types_of(fields: Iterable[pa.Field]) -> dict[str, Types]:
    """The types that JSON does not have, by the name of the column, or of the field of a struct."""
    found = {field.name: _types_in(field.type) for field in fields}
    return {name: one for name, one in found.items() if one is not None}


def _types_in(kind: pa.DataType) -> Types:
    """The types inside an Arrow type; None if JSON has all of them."""
    if kinds.is_dictionary(kind):
        return _types_in(kind.value_type)
    if kinds.is_timestamp(kind) or kinds.is_date(kind):
        return TIME
    if kinds.is_decimal(kind):
        return DECIMAL
    if kinds.is_struct(kind):
        return types_of(kind) or None
    if kinds.is_map(kind):
        found = _types_in(kind.item_type)
    else:
        found = _types_in(kind.value_type) if kind.num_fields == 1 else None
    return None if found is None else [found]


def decode_row(content: bytes, types: dict[str, Types]) -> dict[str, Any]:
    """The attributes of a row; raises NotificationError if they can't be decoded."""
    try:
        return {name: _read(raw, types.get(name)) for name, raw in _as_fields(content).items()}
    except (ValueError, RecursionError) as problem:  # raised by msgspec, or for an invalid time
        raise NotificationError(f"the row can't be decoded: {problem}") from None


def _read(raw: Any, types: Types) -> Any:
    if types is None or bytes(raw) == b"null":
        return _as_value(raw)
    if types == TIME:
        return _read_time(_as_text(raw))
    if types == DECIMAL:
        return _as_decimal(raw)
    if isinstance(types, dict):
        return {name: _read(one, types.get(name)) for name, one in _as_fields(raw).items()}
    if isinstance(types, list) and types:
        if bytes(raw)[:1] == b"[":
            return [_read(one, types[0]) for one in _as_elements(raw)]
        return {name: _read(one, types[0]) for name, one in _as_fields(raw).items()}
    return _as_value(raw)  # for a type that only later releases know


def _read_time(text: str) -> dt.datetime:
    found = dt.datetime.fromisoformat(text)
    return found.replace(tzinfo=dt.UTC) if found.tzinfo is None else found.astimezone(dt.UTC)
