"""Rows as payloads: reading one again gives the row, by the rules of declared attributes."""

from __future__ import annotations

import datetime as dt
import decimal
import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from tidings.filters import Attributes
from tidings.notifications import arrow_schema, decode_json, encode_rows

DECLARED = Attributes(
    {
        "id": "integer",
        "price": "double",
        "cost": "decimal(10, 2)",
        "place": "string",
        "open": "boolean",
        "day": "date",
        "at": "timestamp",
        "tags": "list<string>",
        "lines": "list<struct<sku: string, count: integer>>",
        "user.city": "string",
        "attrs": "map<string, double>",
    },
    extra="keep",
)
TEXT = st.text(st.characters(codec="utf-8"), max_size=6)
NUMBER = st.floats(allow_nan=False, allow_infinity=False)
MOMENT = dt.datetime.fromtimestamp(0, dt.UTC)
ROWS = st.fixed_dictionaries(
    {},
    optional={
        "id": st.integers(-(2**63), 2**63 - 1),
        "price": NUMBER,
        "cost": st.decimals(-9999, 9999, places=2).map(float),
        "place": TEXT,
        "open": st.booleans(),
        "day": st.dates(dt.date(1, 1, 1)).map(str),
        "at": st.integers(-(10**15), 7 * 10**15).map(
            lambda at: (MOMENT + dt.timedelta(microseconds=at)).isoformat()
        ),
        "tags": st.lists(st.none() | TEXT, max_size=3),
        "lines": st.lists(
            st.fixed_dictionaries({}, optional={"sku": TEXT, "count": st.integers(0, 9)}),
            max_size=3,
        ),
        "user": st.fixed_dictionaries({}, optional={"city": TEXT, "age": st.integers(0, 99)}),
        "attrs": st.dictionaries(TEXT, NUMBER, max_size=2),
        "zone": st.none() | TEXT | st.integers(0, 5),
    },
)


@given(st.lists(ROWS, max_size=5))
def test_what_is_encoded_is_read_again(rows: list[dict[str, Any]]) -> None:
    lines = pa.array([json.dumps(row) for row in rows], pa.string())
    once = decode_json(lines, arrow_schema(DECLARED), extra="keep")
    assert not once.reasons
    names = [*once.good.schema.names, "more"]
    texts = pa.nulls(len(rows), pa.string()) if once.extra is None else once.extra
    table = pa.RecordBatch.from_arrays([*once.good.columns, texts], names=names)
    payloads = encode_rows(table, "more")
    twice = decode_json(pa.array(payloads, pa.binary()), arrow_schema(DECLARED), extra="keep")
    assert not twice.reasons
    assert twice.good.equals(once.good)
    extra = [None] * len(rows) if twice.extra is None else twice.extra.to_pylist()
    assert [one and json.loads(one) for one in extra] == [
        one and json.loads(one) for one in texts.to_pylist()
    ]


def test_values_of_all_kinds() -> None:
    moment = dt.datetime(2013, 1, 1, 10, tzinfo=dt.UTC)
    row = {"t": moment, "d": dt.date(2013, 1, 1), "x": 1.5, "l": [1, None], "s": {"a": "ü"}}
    batch = pa.RecordBatch.from_pylist([row | {"m": decimal.Decimal("1.20"), "b": b"\x00"}])
    (payload,) = encode_rows(batch)
    assert json.loads(payload) == row | {
        "t": "2013-01-01T10:00:00Z", "d": "2013-01-01", "m": 1.2, "b": "AA==",
    }  # fmt: skip


def test_a_null_is_an_absent_field() -> None:
    batch = pa.record_batch({"a": [1, None], "s": [{"x": None, "y": 2}, None]})
    assert encode_rows(batch) == [b'{"a":1,"s":{"y":2}}', b"{}"]


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()])
def test_a_single_column_of_bytes_is_the_payload(kind: Any) -> None:
    assert encode_rows(pa.record_batch({"b": pa.array([b"x", None], kind)})) == [b"x", b""]
    other = pa.record_batch({"b": pa.array([b"x"], kind), "extra": ['{"z": 1}']})
    assert encode_rows(other, "extra") == [b"x"]


def test_rows_without_columns_have_only_other_fields() -> None:
    batch = pa.record_batch({"extra": ['{"z": [1, {"a": null}]}', None]})
    assert encode_rows(batch, "extra") == [b'{"z":[1,{"a":null}]}', b"{}"]
