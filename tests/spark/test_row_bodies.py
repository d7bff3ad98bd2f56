"""Rows as bodies: a subscriber gets the values of the columns, the subject and the time."""

from __future__ import annotations

import datetime as dt
import json
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from tidings.model import NotificationError
from tidings.network import encode_attributes
from tidings.notifications import encode_rows
from tidings.notifications.content_formats import decode_content, decode_row, types_of
from tidings.routing.clients.subscriber import Delivery, Subscriber
from tidings.routing.protocol import messages as m, unwrap
from tidings.spark.outbox.batches.row_bodies import encode_bodies

BEGAN = 1_700_000_000_000_000
UTC = dt.UTC
NOON = dt.datetime(2013, 1, 31, 12, 0, 0, 123, UTC)
NAIVE = dt.datetime(1960, 5, 5, 1, tzinfo=UTC).replace(tzinfo=None)
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("subject", pa.string()),
        ("at", pa.timestamp("us", "UTC")),
        ("seen", pa.timestamp("us")),
        ("day", pa.date32()),
        ("price", pa.decimal128(38, 20)),
        ("ratio", pa.float64()),
        ("tags", pa.list_(pa.string())),
        ("days", pa.list_(pa.date32())),
        (
            "user",
            pa.struct([("city", pa.string()), ("born", pa.date32()), ("`x`.y", pa.int64())]),
        ),
        ("lines", pa.list_(pa.struct([("sku", pa.string()), ("price", pa.decimal128(10, 2))]))),
        ("rates", pa.map_(pa.string(), pa.decimal128(10, 2))),
        ("geo.zone", pa.string()),
        ("zip code", pa.timestamp("ms")),
        ('"\\\n', pa.bool_()),
        ("extra", pa.string()),
    ]
)


def deliver(body: bytes) -> Delivery:
    """What an agent hands to its application."""
    one = Subscriber("s", "r", b"x")
    one.start(0)
    one.receive(m.Answer(1, 1, 7, 0, 0, {}), 0)
    one.receive(m.Setup(1, 7, (), (), 0, 0), 0)
    one.receive(m.Notification(1, 1, (m.Mark(7, 1, (7,)),), body, "p", 1), 0)
    (found,) = one.inbox
    assert isinstance(found, Delivery)
    return found


def deliver_all(rows: list[dict[str, Any]], time: str | None = None) -> list[Delivery]:
    batch = pa.RecordBatch.from_pylist(rows, SCHEMA)
    return [deliver(one) for one in encode_bodies(batch, "extra", time, BEGAN).to_pylist()]


def test_values_come_as_they_are() -> None:
    row = {
        "id": 7, "subject": "flights.EWR", "at": NOON, "seen": NOON.replace(tzinfo=None),
        "day": dt.date(2013, 1, 31), "price": Decimal("0.12345678901234567890"), "ratio": 0.1,
        "tags": ["a", None, ""], "days": [dt.date(1, 1, 1), None],
        "user": {"city": None, "born": dt.date(1969, 12, 31), "`x`.y": 5},
        "lines": [{"sku": "a", "price": Decimal("1.10")}, None, {"sku": None, "price": None}],
        "rates": [("EUR", Decimal("1.50")), ("", None)],
        "geo.zone": "EU", "zip code": NAIVE, '"\\\n': False,
        "extra": '{"at_home": "2013-01-01", "user": {"age": 5}, "lines": [{"x": 1.5}, null, null]}',
    }  # fmt: skip
    (one,) = deliver_all([row])
    assert one.attributes == {
        "id": 7, "subject": "flights.EWR", "at": NOON, "seen": NOON,
        "day": dt.datetime(2013, 1, 31, tzinfo=UTC), "price": Decimal("0.12345678901234567890"),
        "ratio": 0.1, "tags": ["a", None, ""], "days": [dt.datetime(1, 1, 1, tzinfo=UTC), None],
        "user": {"born": dt.datetime(1969, 12, 31, tzinfo=UTC), "`x`.y": 5, "age": 5},
        "lines": [{"sku": "a", "price": Decimal("1.10"), "x": 1.5}, None, {}],
        "rates": {"EUR": Decimal("1.50")}, "geo.zone": "EU",
        "zip code": dt.datetime(1960, 5, 5, 1, tzinfo=UTC), '"\\\n': False,
        "at_home": "2013-01-01",
    }  # fmt: skip
    assert type(one.attributes["price"]) is Decimal
    assert one.attributes["lines"][0]["price"].as_tuple() == Decimal("1.10").as_tuple()
    assert (one.subject, one.time) == ("flights.EWR", BEGAN / 1e6)
    assert json.loads(one.payload)["at"] == "2013-01-31T12:00:00.000123Z"
    assert one.content is one.payload


def test_nulls_are_left_out() -> None:
    (one,) = deliver_all([{}])
    assert (one.attributes, one.payload, one.subject) == ({}, b"{}", "")


@pytest.mark.parametrize(
    ("row", "time", "expected"),
    [
        ({"at": NOON}, "at", NOON.timestamp()),
        ({"at": NOON}, None, BEGAN / 1e6),
        ({"at": None}, "at", BEGAN / 1e6),
        ({"at": dt.datetime(1960, 1, 1, tzinfo=UTC)}, "at", -315619200.0),
        ({"day": dt.date(2013, 1, 31)}, "day", 1359590400.0),
        ({"zip code": NAIVE}, "zip code", -304815600.0),
    ],
)  # fmt: skip
def test_time(row: dict[str, Any], time: str | None, expected: float) -> None:
    (one,) = deliver_all([row], time)
    assert one.time == expected


def test_subjects() -> None:
    given = ["", "a", "ä" * 1024, "x" * 1025, None, "\0"]
    told = deliver_all([{"subject": one} for one in given])
    assert [one.subject for one in told] == ["", "a", "ä" * 1024, "", "", "\0"]
    assert told[3].attributes == {"subject": "x" * 1025}
    for kind in (pa.large_string(), pa.dictionary(pa.int8(), pa.string())):
        batch = pa.record_batch({"subject": pa.array(["s", None]).cast(kind)})
        bodies = encode_bodies(batch, None, None, 5).to_pylist()
        assert [deliver(one).subject for one in bodies] == ["s", ""]
    batch = pa.record_batch({"subject": pa.array([5])})  # not a text, so it is only an attribute
    one = deliver(encode_bodies(batch, None, None, 5)[0].as_py())
    assert (one.subject, one.attributes) == ("", {"subject": 5})


def test_undeclared_subjects() -> None:
    texts = ['{"subject": "a"}', None, '{"subject": 5}', '{"x": "subject"}']
    batch = pa.record_batch({"extra": pa.array(texts, pa.string())})
    told = [deliver(one) for one in encode_bodies(batch, "extra", None, 5).to_pylist()]
    assert [one.subject for one in told] == ["a", "", "", ""]
    assert [one.attributes for one in told] == [json.loads(one or "{}") for one in texts]


def test_numbers_that_json_does_not_have() -> None:
    rows: list[dict[str, Any]] = [
        {"ratio": 1.5, "subject": "a"},
        {"ratio": math.nan, "subject": "b", "at": NOON, "extra": '{"more": 1}'},
        {"ratio": -math.inf, "subject": "c"},
        {"ratio": math.inf, "price": Decimal("0.12345678901234567890")},
    ]
    told = deliver_all(rows)
    assert told[0].attributes == {"ratio": 1.5, "subject": "a"}
    found = told[1].attributes
    assert found is not None
    assert math.isnan(found.pop("ratio"))
    assert found == {"subject": "b", "at": NOON, "more": 1}
    assert told[2].attributes == {"ratio": -math.inf, "subject": "c"}
    assert [one.subject for one in told] == ["a", "b", "c", ""]
    assert json.loads(told[1].payload)["ratio"] is None
    # MessagePack has no decimals: then the number is null, as in the payload
    assert told[3].attributes == {"ratio": None, "price": Decimal("0.12345678901234567890")}
    nested = pa.array([[{"x": [math.nan]}], [{"x": [1.0]}], None])
    bodies = encode_bodies(pa.record_batch({"a": nested}), None, None, 5).to_pylist()
    assert repr(deliver(bodies[0]).attributes) == "{'a': [{'x': [nan]}]}"
    assert [deliver(one).attributes for one in bodies[1:]] == [{"a": [{"x": [1.0]}]}, {}]


def test_a_single_column_of_bytes_is_the_payload() -> None:
    values = [b"\xf5tidings and more", b"", None, b"{}"]
    batch = pa.record_batch({"value": pa.array(values, pa.binary())})
    told = [deliver(one) for one in encode_bodies(batch, None, None, BEGAN).to_pylist()]
    assert [one.payload for one in told] == [value or b"" for value in values]
    assert {one.attributes is None for one in told} == {True}
    assert {one.time for one in told} == {BEGAN / 1e6}


leaves = st.sampled_from(
    [
        (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
        (pa.string(), st.text(max_size=5)),
        (pa.bool_(), st.booleans()),
        (pa.float64(), st.floats(allow_nan=False, allow_infinity=False)),
        (pa.date32(), st.dates()),
        (pa.timestamp("us", "UTC"), st.datetimes(timezones=st.just(UTC))),
        (
            pa.decimal128(20, 3),
            st.integers(-(10**19), 10**19).map(lambda one: Decimal(one).scaleb(-3)),
        ),
    ]
)
names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=4)


def nest(inner: Any) -> Any:
    def in_list(one: Any) -> Any:
        return pa.list_(one[0]), st.lists(one[1], max_size=3)

    def in_struct(fields: dict[str, Any]) -> Any:
        kind = pa.struct([(name, one[0]) for name, one in fields.items()])
        return kind, st.fixed_dictionaries(
            {name: st.none() | one[1] for name, one in fields.items()}
        )

    return inner.map(in_list) | st.dictionaries(names, inner, min_size=1, max_size=3).map(in_struct)


columns = st.dictionaries(names, st.recursive(leaves, nest, max_leaves=4), min_size=1, max_size=4)


def plain(value: Any) -> Any:
    """The value that a subscriber should see: no nulls in objects, and days are midnights."""
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items() if one is not None}
    if isinstance(value, list):
        return [plain(one) for one in value]
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return dt.datetime(value.year, value.month, value.day, tzinfo=UTC)
    return value


@settings(deadline=None)
@given(columns, st.data(), st.none() | names)
def test_any_columns(kinds: dict[str, Any], data: st.DataObject, subject: str | None) -> None:
    row = {name: data.draw(st.none() | values) for name, (_, values) in kinds.items()}
    schema = [(name, kind) for name, (kind, _) in kinds.items()]
    if subject is not None and "subject" not in kinds:
        row["subject"] = subject
        schema.append(("subject", pa.string()))
    batch = pa.RecordBatch.from_pylist([row, row], pa.schema(schema))
    bodies = encode_bodies(batch, None, None, BEGAN).to_pylist()
    assert bodies[0] == bodies[1]
    one = deliver(bodies[0])
    assert one.attributes == plain(row)
    assert one.payload == encode_rows(batch)[0]
    expected = row.get("subject")
    assert one.subject == (expected if isinstance(expected, str) else "")


def test_an_agent_that_publishes_the_same_gives_the_same_values() -> None:
    """Whichever way it came: through Spark, or from an agent."""
    row = {"id": 7, "at": NOON, "day": dt.date(2013, 1, 31), "tags": ["a"], "ratio": 0.5}
    (one,) = deliver_all([row])
    assert one.attributes == decode_content(encode_attributes(row))


def test_rows_that_are_no_rows() -> None:
    for content in (b"", b"[1]", b'{"at": 5}', b'{"at": "soon"}', b'{"at": "2013-01-01"'):
        with pytest.raises(NotificationError, match="the row can't be decoded"):
            decode_row(content, {"at": "time"})
    assert decode_row(b'{"at": [1]}', {"at": "of a later release", "x": []}) == {"at": [1]}


def test_types_are_only_those_that_json_lacks() -> None:
    assert types_of(SCHEMA) == {
        "at": "time", "seen": "time", "day": "time", "price": "decimal", "days": ["time"],
        "user": {"born": "time"}, "lines": [{"price": "decimal"}], "rates": ["decimal"],
        "zip code": "time",
    }  # fmt: skip
    about, _ = unwrap(encode_bodies(pa.record_batch({"a": [1]}), None, None, 1)[0].as_py())
    assert about.types == {}
