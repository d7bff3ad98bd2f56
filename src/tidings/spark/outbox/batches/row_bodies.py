"""The rows of a batch as bodies of notifications: payloads, with subjects, times and types.

    columns   subject: a.b   at: 2013-01-01T05:00   price: 1.10
    body      MAGIC, size, [nil, subject, time, nil, types], {"subject": "a.b", "at": "2013-...",

A body is the same as the one that `routing.protocol.wrap` makes, except that lengths and times
may take more bytes. The bodies of all rows are assembled from whole columns, because creating an
object for each row would take longer than encoding its payload. The attributes are not written
again: the payload has them.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as kinds

from tidings.notifications import encode_rows, join_fields, strip_nulls
from tidings.notifications.content_formats import types_of
from tidings.routing.protocol import MAGIC, About, messages as m, wrap

SUBJECT = "subject"
_FRONT = np.dtype([("magic", "S8"), ("size", "<u4"), ("array", "S2"), ("text", "S1"),
                   ("length", ">u2")])  # fmt: skip
_ARRAY, _TEXT, _TIME, _NIL = b"\x95\xc0", b"\xda", b"\xd3", b"\xc0"  # of MessagePack

Numbers = npt.NDArray[np.int64]


def encode_bodies(
    rows: pa.RecordBatch, extra: str | None, time: str | None, began: int
) -> pa.Array:
    """The body of each row. `extra` is the column of undeclared fields, and `time` the column with
    the time, if there are such columns; `began` is the time given to rows without a time, in
    microseconds since 1970."""
    payloads = encode_rows(rows, extra)
    names = [name for name in rows.schema.names if name != extra]
    columns = rows.select(names)
    times = read_times(rows, time, began)
    if is_one_blob(columns):  # the payload is not an object, so there are no attributes
        return pa.array(
            [wrap(About(time=at), one) for at, one in zip(times.tolist(), payloads, strict=True)],
            pa.binary(),
        )
    subjects = _read_subjects(rows, extra)
    types = msgspec.msgpack.encode(types_of(columns.schema))
    bodies = pc.binary_join_element_wise(
        *_write_abouts(subjects, times, types), pa.array(payloads, pa.binary()), b""
    )
    odd = find_not_finite(columns)
    return bodies if not len(odd) else _with_values(bodies, rows, extra, odd, payloads, times)


def read_times(rows: pa.RecordBatch, time: str | None, began: int) -> Numbers:
    """The time of each row, in microseconds since 1970."""
    if time is None:
        return np.full(rows.num_rows, began, np.int64)
    column = rows.column(time)
    zone = column.type.tz if kinds.is_timestamp(column.type) else None
    micros = column.cast(pa.timestamp("us", zone)).cast(pa.int64()).fill_null(began)
    found: Numbers = micros.to_numpy()
    return found


def _read_subjects(rows: pa.RecordBatch, extra: str | None) -> pa.Array | None:
    """The subjects as bytes, empty where a row has none or one that is too long; None if no row
    has a subject. If no column is declared for it, a subject is one of the undeclared fields."""
    if SUBJECT in rows.schema.names:
        column = rows.column(SUBJECT)
    elif extra is not None:
        column = _read_undeclared(rows.column(extra))
    else:
        return None
    if kinds.is_dictionary(column.type):
        column = column.dictionary_decode()
    if not (kinds.is_string(column.type) or kinds.is_large_string(column.type)):
        return None
    fits = pc.less_equal(pc.utf8_length(column), m.LONGEST_SUBJECT)
    return pc.if_else(fits, column, "").fill_null("").cast(pa.binary())


def _read_undeclared(texts: pa.Array) -> pa.Array:
    """The subjects among undeclared fields, which are JSON."""
    likely = pc.match_substring(texts, SUBJECT).fill_null(False)
    if not pc.any(likely).as_py():
        return pa.nulls(len(texts), pa.string())
    found = [
        msgspec.json.decode(text).get(SUBJECT) if is_likely else None
        for text, is_likely in zip(texts.to_pylist(), likely.to_pylist(), strict=True)
    ]
    return pa.array([one if isinstance(one, str) else None for one in found], pa.string())


def _write_abouts(subjects: pa.Array | None, times: Numbers, types: bytes) -> list[pa.Array]:
    """The front of each body, as columns: the part before the subject, the subject, and the part
    after it."""
    lengths = 0 if subjects is None else pc.binary_length(subjects).to_numpy()
    front = np.zeros(len(times), _FRONT)
    back = np.zeros(len(times), [("time", "S1"), ("micros", ">i8"), ("more", f"S{1 + len(types)}")])
    front["magic"], front["array"], front["text"] = MAGIC, _ARRAY, _TEXT
    front["length"] = lengths
    front["size"] = len(_ARRAY) + len(_TEXT) + 2 + lengths + back.itemsize
    back["time"], back["micros"], back["more"] = _TIME, times, _NIL + types
    found = [_as_binary(front), _as_binary(back)]
    return found if subjects is None else [found[0], subjects, found[1]]


def _as_binary(records: npt.NDArray[Any]) -> pa.Array:
    size = records.itemsize
    starts = size * np.arange(len(records) + 1, dtype=np.int32)
    buffers = [None, pa.py_buffer(starts), pa.py_buffer(records.tobytes())]
    return pa.Array.from_buffers(pa.binary(), len(records), buffers)


def is_one_blob(rows: pa.RecordBatch) -> bool:
    """Whether the rows have a single column of bytes, which is sent as it is."""
    kind = rows.schema.field(0).type if rows.num_columns == 1 else None
    return kind is not None and bool(kinds.is_binary(kind) or kinds.is_large_binary(kind))


# -- numbers that are not finite -----------------------------------------------------------------


def find_not_finite(rows: pa.RecordBatch) -> Numbers:
    """The rows that contain NaN or an infinite number, at any depth."""
    columns = [column for column in rows.columns if _has_not_finite(column)]
    if not columns:
        return np.zeros(0, np.int64)
    values = (column.to_pylist(maps_as_pydicts="strict") for column in columns)
    found = [at for at, row in enumerate(zip(*values, strict=True)) if _is_not_finite(list(row))]
    return np.array(found, np.int64)


def _has_not_finite(column: pa.Array) -> bool:
    kind = column.type
    if kinds.is_floating(kind):
        return pc.all(pc.is_finite(column)).as_py() is False
    if kinds.is_dictionary(kind):
        return _has_not_finite(column.dictionary)
    if kinds.is_struct(kind):
        return any(map(_has_not_finite, column.flatten()))
    if kinds.is_map(kind):
        return _has_not_finite(column.items)
    return kind.num_fields == 1 and _has_not_finite(pc.list_flatten(column))


def _is_not_finite(value: Any) -> bool:
    if isinstance(value, float):
        return not np.isfinite(value)
    if isinstance(value, dict):
        return any(map(_is_not_finite, value.values()))
    return isinstance(value, list) and any(map(_is_not_finite, value))


def _with_values(
    bodies: pa.Array, rows: pa.RecordBatch, extra: str | None, odd: Numbers, payloads: list[bytes],
    times: Numbers,
) -> pa.Array:  # fmt: skip
    """The bodies of rows; the bodies of the rows `odd` also get the attributes, in MessagePack."""
    # imported late, because most workers never need it
    from tidings.network import Refusal, encode_attributes

    found = bodies.to_pylist()
    subjects = _read_subjects(rows, extra)
    for at, row in zip(odd.tolist(), rows.take(pa.array(odd)).to_pylist(maps_as_pydicts="strict"),
                       strict=True):  # fmt: skip
        more = None if extra is None else row.pop(extra)
        fields = join_fields(strip_nulls(row), None if more is None else msgspec.json.decode(more))
        try:
            content = encode_attributes(fields)
        except Refusal:  # for example, MessagePack has no decimals
            continue
        subject = "" if subjects is None else subjects[at].as_py().decode()
        found[at] = wrap(About(content, subject, int(times[at])), payloads[at])
    return pa.array(found, pa.binary())
