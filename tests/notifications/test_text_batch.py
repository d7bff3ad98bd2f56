"""Columns of text, as Spark's CSV reader gives them."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest

from tidings import Attributes, AttributesError, NotificationError
from tidings.notifications import decode_json, decode_text_columns
from tidings.notifications.texts import read_texts

SCHEMA = pa.schema([("delay", pa.int64()), ("price", pa.float64()), ("day", pa.date32())])
TEXT = pa.schema([(name, pa.string()) for name in (*SCHEMA.names, "_corrupt_record")])


def test_texts_become_values_and_bad_rows_have_reasons() -> None:
    rows = [
        {"delay": "12", "price": "1.5", "day": "2013-01-31"},
        {"delay": "late", "price": "x"},
        {"price": "2"},
        {"delay": "3", "_corrupt_record": '3,"x'},
        {"delay": "0x10", "price": "1"},
        {"day": "2013-02-30"},
        {"delay": "", "price": "1"},
        {"delay": "x" * 100},
    ]
    decoded = decode_text_columns(pa.RecordBatch.from_pylist(rows, TEXT), SCHEMA, "_corrupt_record")
    assert decoded.good.schema.equals(SCHEMA)
    assert decoded.good.to_pylist() == [
        {"delay": 12, "price": 1.5, "day": dt.date(2013, 1, 31)},
        {"delay": None, "price": 2.0, "day": None},
    ]
    assert decoded.rows.tolist() == [0, 2]
    assert decoded.bad_rows.tolist() == [1, 3, 4, 5, 6, 7]
    assert decoded.reasons == [
        "column 'delay': found 'late', expected an integer of 64 bits",
        "the row could not be split into columns: found '3,\"x', expected one value for each "
        "column",
        "column 'delay': found '0x10', expected an integer of 64 bits",
        "column 'day': found '2013-02-30', expected a date",
        "column 'delay': found '', expected an integer of 64 bits",
        f"column 'delay': found '{'x' * 60}...', expected an integer of 64 bits",
    ]


TEXTS = {
    "integer": "7|-7|+7|007|-0|0x1F|1.0|1e3|9223372036854775807|-9223372036854775809|1_000|٣|"
    "999999999999999999|99999999999999999999",
    "double": "1|-1.5|+1.5|1.|.5|1e5|1E-5|1e400|1e-400|NaN|inf|-Infinity|1d|2F|0x1p3|1,5|1e|--1|"
    "123456789012345.123456789012345|9007199254740993|0.1e99",
    "boolean": "true|TRUE|t|yes|1|0|n|False|2|on",
    "date": "2013-01-31|2013-1-31|2013|2013-02-30|0000-01-01|0999-01-01|9999-12-31|10000-01-01|"
    "2013-01-31T05|2013-01-31x|20130131|2013-13-01",
    "timestamp": "2013-01-31T12:13:14Z|2013-01-31 12:13:14|2013-01-31 12:13:14.5|2013-01-31|"
    "2013-01-31T12:13:14.123456789Z|2013-01-31T12:13:14+01:00|2013-01-31T12:13:60Z|2013-01-31T12|"
    "2013-01-31T24:00:00|2013-01-31T12:13:14+23:00|2013-01-31t12:13:14z|2013-01-31T12:13:14ZZ|"
    "2013-02-29T00:00:00|9999-12-31T23:59:59.999999Z|9999-12-31T23:59:59-01:00|"
    "0001-01-01T00:00:00Z|1899-12-31T23:59:59",
}
ARROW = {"integer": pa.int64(), "double": pa.float64(), "boolean": pa.bool_(),
         "date": pa.date32(), "timestamp": pa.timestamp("us", "UTC")}  # fmt: skip


@pytest.mark.parametrize("kind", sorted(TEXTS))
def test_a_text_is_read_as_attributes_read_it(kind: Any) -> None:
    """Each text alone, all together, and among so many that the column is halved."""
    known = TEXTS[kind].split("|")
    texts = [form for text in known for form in (text, f" {text}\t", f"{text}\n", f"x{text}")]
    attributes = Attributes({"a": kind})
    expected: list[Any] = []
    bad: list[int] = []
    for at, text in enumerate(texts):
        try:
            expected.append(attributes.read({"a": text})["a"])
        except NotificationError:
            expected.append(None)
            bad.append(at)
    for many in (1, 40):
        values, wrong = read_texts(pa.array(texts * many), ARROW[kind])
        assert repr(values.to_pylist()) == repr(_arrow_like(expected, kind) * many)
        assert wrong.tolist() == [at + len(texts) * turn for turn in range(many) for at in bad]
    for text, value in zip(texts, _arrow_like(expected, kind), strict=True):
        alone, _ = read_texts(pa.array([text], pa.large_string()), ARROW[kind])
        assert repr(alone.to_pylist()) == repr([value]), text


def _arrow_like(values: list[Any], kind: str) -> list[Any]:
    found: list[Any] = pa.array(values, ARROW[kind]).to_pylist()
    return found


@pytest.mark.parametrize("zone", [None, "UTC", "Asia/Tokyo"])
def test_zones_name_the_same_instant(zone: str | None) -> None:
    kind = pa.timestamp("us", zone)
    values, _ = read_texts(pa.array(["2013-01-31T12:00:00Z", "2013-01-31 13:00+01:00"]), kind)
    assert values.type == kind
    assert values.cast(pa.int64()).to_pylist() == [1359633600000000] * 2


def test_bytes_that_are_not_text() -> None:
    raw = pa.array([b"a", b"\xff", None], pa.binary()).view(pa.string())
    batch = pa.RecordBatch.from_arrays([raw, raw], names=["a", "bad"])
    decoded = decode_text_columns(batch, pa.schema([("a", pa.string())]), "bad")
    assert decoded.bad_rows.tolist() == [0, 1]
    assert "found bytes that are not UTF-8" in decoded.reasons[1]
    decoded = decode_text_columns(batch.select(["a"]), pa.schema([("a", pa.string())]))
    assert decoded.reasons == ["column 'a': found bytes that are not UTF-8, expected text"]
    assert decoded.good.to_pylist() == [{"a": "a"}, {"a": None}]


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["1", None]),
        pa.array(["1", None], pa.large_string()),
        pa.array(["1", None], pa.string_view()),
        pa.array(["1", None]).dictionary_encode(),
    ],
)
def test_kinds_of_text(column: Any) -> None:
    batch = pa.RecordBatch.from_arrays([column, pa.nulls(2)], names=["delay", "price"])
    decoded = decode_text_columns(batch, SCHEMA)
    assert decoded.good.to_pylist() == [
        {"delay": 1, "price": None, "day": None},
        {"delay": None, "price": None, "day": None},
    ]
    none = decode_text_columns(batch.slice(0, 0), SCHEMA)
    assert none.good.schema.equals(SCHEMA)


def test_columns_that_concern_all_rows() -> None:
    batch = pa.RecordBatch.from_pydict({"dleay": ["1"]})
    with pytest.raises(NotificationError, match="no column 'dleay'; did you mean delay"):
        decode_text_columns(batch, SCHEMA)
    assert decode_text_columns(batch, SCHEMA, extra="drop").good.num_rows == 1
    with pytest.raises(NotificationError, match="'delay' has the type int64, expected string"):
        decode_text_columns(pa.RecordBatch.from_pydict({"delay": [1]}), SCHEMA)
    with pytest.raises(AttributesError, match="'a' is a list, expected a type that can be read"):
        decode_text_columns(batch, pa.schema([("a", pa.list_(pa.string()))]), extra="drop")
    with pytest.raises(NotificationError, match="there is no column '_corrupt'; expected one of"):
        decode_text_columns(pa.RecordBatch.from_pydict({"delay": ["1"]}), SCHEMA, "_corrupt")
    with pytest.raises(AttributesError, match='expected "open", "keep", "drop"'):
        decode_text_columns(batch, SCHEMA, extra="all")  # type: ignore[arg-type]
    twice = pa.RecordBatch.from_arrays([pa.array(["1"])] * 2, names=["delay", "delay"])
    with pytest.raises(NotificationError, match="the column 'delay' occurs more than once"):
        decode_text_columns(twice, SCHEMA)


def test_what_has_to_be_there() -> None:
    schema = pa.schema([pa.field("delay", pa.int64(), nullable=False)])
    decoded = decode_text_columns(pa.RecordBatch.from_pydict({"delay": ["1", None, "x"]}), schema)
    assert decoded.reasons == [
        "column 'delay': found null, expected an integer of 64 bits",
        "column 'delay': found 'x', expected an integer of 64 bits",
    ]


def test_a_text_means_the_same_in_json() -> None:
    texts = ["12", " 12", "1.0", "x", "9223372036854775808"]
    lines = pa.array([f'{{"delay": "{text}"}}' for text in texts])
    from_text = decode_text_columns(pa.RecordBatch.from_pydict({"delay": texts}), SCHEMA)
    from_json = decode_json(lines, SCHEMA)
    assert from_text.good.equals(from_json.good)
    assert from_text.bad_rows.tolist() == from_json.bad_rows.tolist() == [2, 3, 4]
