"""The rows of Arrow data as notifications. The columns are attributes, except that a column named
`payload` is the payload.

    symbol  price  payload              attributes                          payload
    ACME    95.5   b"..."      ──>      {"symbol":"ACME","price":95.5}      b"..."

Null values are left out. Only the encoded rows of one batch are in memory at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol, cast

from tidings.model import NotificationError
from tidings.network.agents.encoding import encode_attributes
from tidings.network.agents.refusals import Refusal

if TYPE_CHECKING:
    import pyarrow as pa

PAYLOAD = "payload"
ROWS = 1000  # in a batch

Pairs = Iterable[tuple[Mapping[str, Any] | bytes, bytes]]


class _Array(Protocol):
    def __arrow_c_array__(self, requested_schema: object = None) -> Any: ...


class _Stream(Protocol):
    def __arrow_c_stream__(self, requested_schema: object = None) -> Any: ...


ArrowRows = _Array | _Stream
"""Anything with the Arrow PyCapsule interface, such as a table of pyarrow, pandas, polars or
DuckDB."""


def pairs_of(notifications: Pairs | ArrowRows) -> Iterator[tuple[Mapping[str, Any] | bytes, bytes]]:
    """Pairs of attributes and payload, from such pairs or from anything with the Arrow PyCapsule
    interface. The attributes may be given in an encoded form."""
    if hasattr(notifications, "__arrow_c_array__") or hasattr(notifications, "__arrow_c_stream__"):
        return _rows(notifications)
    return iter(cast(Pairs, notifications))


def check_pair(one: Any) -> tuple[Mapping[str, Any] | bytes, bytes]:
    """The attributes and the payload of a notification. Raise Refusal if the notification is not
    such a pair."""
    if isinstance(one, tuple | list) and len(one) == 2:
        attributes, payload = one
        return attributes, payload
    raise Refusal(
        f"found a notification of type {type(one).__name__}, expected a pair of attributes and "
        "payload"
    )


def _rows(given: Any) -> Iterator[tuple[bytes, bytes]]:
    import pyarrow as pa  # only agents that publish Arrow data need it

    from tidings.notifications import encode_rows

    if hasattr(given, "__arrow_c_stream__"):
        reader = pa.RecordBatchReader.from_stream(given)
    else:
        batch = pa.record_batch(given)
        reader = pa.RecordBatchReader.from_batches(batch.schema, [batch])
    names = reader.schema.names
    if twice := {name for name in names if names.count(name) > 1}:
        raise NotificationError(
            f"found the column {min(twice)!r} more than once, expected different names"
        )
    for batch in reader:
        for first in range(0, batch.num_rows, ROWS):
            rows = batch.slice(first, ROWS)
            payloads = [b""] * rows.num_rows
            if PAYLOAD in names:
                payloads = [_payload(one) for one in rows.column(PAYLOAD).to_pylist()]
                rows = rows.drop_columns([PAYLOAD])
            if _fits_json(rows):
                contents = encode_rows(rows) if rows.num_columns else [b"{}"] * len(payloads)
            else:
                contents = [encode_attributes(one) for one in _mappings(rows)]
            yield from zip(contents, payloads, strict=True)


def _fits_json(rows: pa.RecordBatch) -> bool:
    """Whether JSON can express all values: it has no times, and no infinite numbers or NaN. Numbers
    in nested columns are not examined; for these, the answer is False."""
    import pyarrow.compute as pc
    from pyarrow import types

    for column in rows.columns:
        leaves = [*_leaves(column.type)]
        if any(types.is_temporal(one) for one in leaves):
            return False
        if any(types.is_floating(one) for one in leaves) and (
            leaves != [column.type] or pc.all(pc.is_finite(column)).as_py() is False
        ):
            return False
    return True


def _leaves(kind: pa.DataType) -> Iterator[pa.DataType]:
    """The types of the values that a nested type contains."""
    from pyarrow import types

    if types.is_dictionary(kind):
        yield from _leaves(kind.value_type)
    elif kind.num_fields:
        for at in range(kind.num_fields):
            yield from _leaves(kind.field(at).type)
    else:
        yield kind


def _mappings(rows: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    from tidings.notifications import strip_nulls

    return map(strip_nulls, rows.to_pylist(maps_as_pydicts="strict"))


def _payload(value: Any) -> bytes:
    if value is None or isinstance(value, bytes):
        return value or b""
    if isinstance(value, str):
        return value.encode()
    raise NotificationError(
        f"column payload: found {type(value).__name__}, expected bytes or strings"
    )
