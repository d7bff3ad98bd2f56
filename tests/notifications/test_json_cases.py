"""Lines of JSON and what becomes of each: a row, or a reason. One table, read top to bottom."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tidings import Attributes, AttributesError, NotificationError
from tidings.notifications import decode_json

SCHEMA = pa.schema(
    [
        ("dep_delay", pa.int64()),
        ("seats", pa.int16()),
        ("price", pa.float64()),
        ("dest", pa.string()),
        ("late", pa.bool_()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("tags", pa.list_(pa.string())),
        ("days", pa.list_(pa.date32())),
        ("user", pa.struct([("city", pa.string()), ("born", pa.date32())])),
        ("legs", pa.large_list(pa.struct([("to", pa.string()), ("stops", pa.list_(pa.int64()))]))),
        ("an odd.name", pa.int64()),
    ]
)
NOON = dt.datetime(2013, 1, 31, 12, tzinfo=dt.UTC)
DAY = dt.date(2013, 1, 31)

# a line, and the columns that are not null in its row
GOOD: list[tuple[str | bytes, dict[str, Any]]] = [
    ("{}", {}),
    (' {"dep_delay" : 1}\r\n', {"dep_delay": 1}),
    (b'\xef\xbb\xbf{"dep_delay": 1}', {"dep_delay": 1}),
    ('{"dep_delay": null, "tags": null, "user": null}', {}),
    ('{"dep_delay": 9223372036854775807}', {"dep_delay": 2**63 - 1}),
    ('{"dep_delay": -9223372036854775808}', {"dep_delay": -(2**63)}),
    ('{"dep_delay": 12.0}', {"dep_delay": 12}),
    ('{"dep_delay": 1e3}', {"dep_delay": 1000}),
    ('{"dep_delay": " 12 "}', {"dep_delay": 12}),
    ('{"seats": 32767}', {"seats": 32767}),
    ('{"seats": "-32768"}', {"seats": -32768}),
    ('{"price": 12}', {"price": 12.0}),
    ('{"price": 9007199254740993}', {"price": 9007199254740992.0}),
    ('{"price": 100000000000000000000}', {"price": 1e20}),
    ('{"price": "1.5e3"}', {"price": 1500.0}),
    ('{"price": "Infinity"}', {"price": float("inf")}),
    ('{"dest": "S\\u00e3o \\ud83d\\ude00\\u0000"}', {"dest": "São 😀\0"}),
    ('{"late": true}', {"late": True}),
    ('{"late": "no"}', {"late": False}),
    ('{"day": "2013-01-31"}', {"day": DAY}),
    ('{"day": "2013-1-31T23:59"}', {"day": DAY}),
    ('{"day": "0001-01-01"}', {"day": dt.date.min}),
    ('{"at": "2013-01-31T12:00:00Z"}', {"at": NOON}),
    ('{"at": "2013-01-31 12:00:00.000"}', {"at": NOON}),
    ('{"at": "2013-01-31T13:30+01:30"}', {"at": NOON}),
    ('{"at": "2013-01-31"}', {"at": NOON.replace(hour=0)}),
    ('{"tags": []}', {"tags": []}),
    ('{"tags": ["a", null, "b"]}', {"tags": ["a", None, "b"]}),
    ('{"days": [null, "2013-01-31", "2013-1-31"]}', {"days": [None, DAY, DAY]}),
    ('{"user": {}}', {"user": {"city": None, "born": None}}),
    ('{"user": {"born": "2013-01-31"}}', {"user": {"city": None, "born": DAY}}),
    ('{"legs": [null, {"to": "JFK", "stops": ["1", 2, 3.0, null]}]}',
     {"legs": [None, {"to": "JFK", "stops": [1, 2, 3, None]}]}),
    ('{"an odd.name": 1}', {"an odd.name": 1}),
    # the last of two values is taken, whatever the first was
    ('{"dep_delay": 1, "dep_delay": 2}', {"dep_delay": 2}),
    ('{"dep_delay": "x", "dep_delay": 2}', {"dep_delay": 2}),
    ('{"user": {"city": "a"}, "user": {"born": "2013-01-31"}}',
     {"user": {"city": None, "born": DAY}}),
]  # fmt: skip

INTEGER = "expected an integer of 64 bits"
DEEP = "[" * 50_000 + "]" * 50_000
# a line, and the reason that it is refused with; `...` stands for anything
BAD: list[tuple[str | bytes | None, str]] = [
    (None, "the row is null, expected an object"),
    ("", "the line is empty, expected an object"),
    (" \t\r\n", "the line is empty, expected an object"),
    (b"\xef\xbb\xbf", "the line is empty, expected an object"),
    ("null", "found null, expected an object"),
    ('[{"dep_delay": 1}]', 'found [{"dep_delay": 1}], expected an object'),
    ('"x"', 'found "x", expected an object'),
    ("{", "the line is not JSON: the line ends after 1 bytes, expected an object"),
    ('{"dep_delay": 1', "the line is not JSON: the line ends after 15 bytes, expected an object"),
    ('{"dep_delay": 1,}', "the line is not JSON: trailing comma in object (byte 16), ..."),
    ('{"dep_delay": 1} {"dep_delay": 2}', "the line is not JSON: trailing characters (byte ..."),
    ('{"dep_delay": 1},{"dep_delay": 2}', "the line is not JSON: trailing characters (byte ..."),
    ("{'dep_delay': 1}", "the line is not JSON: object keys must be strings (byte 1), ..."),
    ('{"price": NaN}', "the line is not JSON: invalid character (byte 10), expected an object"),
    ('{"price": -Infinity}', "the line is not JSON: invalid character (byte 11), ..."),
    ('{"dep_delay": 01}', "the line is not JSON: invalid number (byte 15), expected an object"),
    ('{"dest": "a\nb"}', "the line is not JSON: invalid character (byte 11), expected an object"),
    ('{"dest": "\\ud800"}', "found \\ud800 at byte 10, half of a surrogate pair; ..."),
    ('{"dest": "\\udc00 x"}', "the line is not JSON: invalid utf-16 surrogate pair (byte 16), ..."),
    (b'{"dest": "\xff"}', "found 0xff at byte 10, expected UTF-8"),
    (b'{"\xff": 1}', "found 0xff at byte 2, expected UTF-8"),
    ('{"dep_delay": "late"}', f"column 'dep_delay': found \"late\", {INTEGER}"),
    ('{"dep_delay": 1.5}', f"column 'dep_delay': found 1.5, {INTEGER}"),
    ('{"dep_delay": true}', f"column 'dep_delay': found true, {INTEGER}"),
    ('{"dep_delay": [1]}', f"column 'dep_delay': found [1], {INTEGER}"),
    ('{"dep_delay": 9223372036854775808}',
     f"column 'dep_delay': found 9223372036854775808, {INTEGER}"),
    ('{"dep_delay": -9223372036854775809}',
     f"column 'dep_delay': found -9223372036854775809, {INTEGER}"),
    ('{"dep_delay": 9223372036854775807.0}',
     f"column 'dep_delay': found 9223372036854775807.0, {INTEGER}"),
    (f'{{"dep_delay": {"1" * 5000}}}', f"column 'dep_delay': found {'1' * 60}..., {INTEGER}"),
    ('{"seats": 32768}', "column 'seats': found 32768, expected an integer of 16 bits"),
    ('{"seats": "32768"}', "column 'seats': found \"32768\", expected an integer of 16 bits"),
    ('{"price": "cheap"}', "column 'price': found \"cheap\", expected a double"),
    ('{"price": 1e400}', "column 'price': found 1e400, expected a double"),
    (f'{{"price": {"1" * 400}}}', f"column 'price': found {'1' * 60}..., expected a double"),
    (f'{{"price": {"1" * 5000}}}', f"column 'price': found {'1' * 60}..., expected a double"),
    ('{"dest": 7}', "column 'dest': found 7, expected a string"),
    (f'{{"dest": ["{"x" * 100_000}"]}}', "column 'dest': found [\"xxx...xxx..., expected a string"),
    ('{"late": 1}', "column 'late': found 1, expected a boolean"),
    ('{"day": "2013-02-30"}', "column 'day': found \"2013-02-30\", expected a date"),
    ('{"day": "0000-01-01"}', "column 'day': found \"0000-01-01\", expected a date"),
    ('{"day": 15000}', "column 'day': found 15000, expected a date"),
    ('{"at": "2013-01-31T25:00:00Z"}', "column 'at': found ..., expected a timestamp"),
    ('{"at": "2013-01-31T12:00:00+19:00"}', "column 'at': found ..., expected a timestamp"),
    ('{"tags": "a"}', "column 'tags': found \"a\", expected a list"),
    ('{"tags": ["a", 1]}', "column 'tags[1]': found 1, expected a string"),
    ('{"days": ["2013-01-31", "soon"]}', "column 'days[1]': found \"soon\", expected a date"),
    ('{"user": "me"}', "column 'user': found \"me\", expected a struct"),
    ('{"user": [{"city": "a"}]}', "column 'user': found [{\"city\": \"a\"}], expected a struct"),
    ('{"user": {"born": "x"}}', "column 'user.born': found \"x\", expected a date"),
    ('{"legs": [{}, {"stops": [1, "x"]}]}', f"column 'legs[1].stops[1]': found \"x\", {INTEGER}"),
    ('{"dep_dealy": 1}', "there is no column 'dep_dealy'; did you mean dep_delay?"),
    ('{"user": {"ctiy": "a"}}', "there is no column 'user.ctiy'; did you mean user.city?"),
    ('{"legs": [{"zzz": "a"}]}', "there is no column 'legs[0].zzz'; expected one of to, stops"),
    ('{"zzz": 1}', "there is no column 'zzz'; expected one of dep_delay, ... and 4 more"),
    (f'{{"dep_delay": {DEEP}}}', "the object of ... bytes is nested too deeply"),
    (f'{{"tags": {DEEP}}}', "the object of ... bytes is nested too deeply"),
    (DEEP, "found [[[..., expected an object"),
]  # fmt: skip


def as_bytes(line: str | bytes | None) -> bytes | None:
    return line.encode() if isinstance(line, str) else line


def is_like(text: str, pattern: str) -> bool:
    """Whether the parts between the `...` of a pattern come in the text, in their order."""
    at = 0
    for part in pattern.split("..."):
        found = text.find(part, at)
        if found < 0 or (at == 0 and found > 0):
            return False
        at = found + len(part)
    return pattern.endswith("...") or text.endswith(part)


def whole(row: dict[str, Any]) -> dict[str, Any]:
    return dict.fromkeys(SCHEMA.names) | row


@pytest.mark.parametrize(("line", "row"), GOOD)
def test_a_good_line(line: str | bytes, row: dict[str, Any]) -> None:
    decoded = decode_json(pa.array([as_bytes(line)]), SCHEMA)
    assert decoded.reasons == []
    assert decoded.good.to_pylist() == [whole(row)]
    decoded.good.validate(full=True)


@pytest.mark.parametrize(("line", "reason"), BAD)
def test_a_bad_line(line: str | bytes | None, reason: str) -> None:
    decoded = decode_json(pa.array([as_bytes(line)], pa.binary()), SCHEMA)
    assert decoded.bad_rows.tolist() == [0]
    assert is_like(decoded.reasons[0], reason), decoded.reasons[0]
    assert decoded.good.num_rows == 0
    assert decoded.good.schema.equals(SCHEMA)


def test_all_of_them_together() -> None:
    """Neighbours change nothing, and every line is accounted for."""
    lines = [as_bytes(line) for pair in zip(GOOD, BAD, strict=False) for line, _ in pair]
    lines += [as_bytes(line) for line, _ in BAD[len(GOOD) :]]
    decoded = decode_json(pa.array(lines), SCHEMA)
    assert decoded.good.to_pylist() == [whole(row) for _, row in GOOD]
    assert decoded.rows.tolist() == list(range(0, 2 * len(GOOD), 2))
    assert np.array_equal(np.sort(np.r_[decoded.rows, decoded.bad_rows]), np.arange(len(lines)))
    assert all(is_like(*pair) for pair in zip(decoded.reasons, (r for _, r in BAD), strict=True))
    decoded.good.validate(full=True)


def test_unknown_fields_are_kept_out() -> None:
    lines = [
        '{"dep_dealy": 1, "user": {"city": "a", "x": [{}]}, "legs": [{"zzz": {}}]}',
        '{"x": {"y": 1}, "dep_delay": "12"}',
        '{"x": nul, "dep_delay": 12}',
    ]
    decoded = decode_json(pa.array(lines), SCHEMA, extra="drop")
    assert decoded.good.to_pylist() == [
        whole({"user": {"city": "a", "born": None}, "legs": [{"to": None, "stops": None}]}),
        whole({"dep_delay": 12}),
    ]
    assert decoded.reasons == [
        "the line is not JSON: invalid character (byte 7), expected an object"
    ]


def test_what_is_kept_out_is_utf8_too() -> None:
    lines = [b'{"x": "\xff"}', b'{"x": "\xc3\xa3", "dep_delay": 1}', None]
    decoded = decode_json(pa.array(lines), SCHEMA, extra="drop")
    assert decoded.rows.tolist() == [1]
    assert decoded.reasons[0] == "found 0xff at byte 7, expected UTF-8"


def test_an_object_over_two_lines_is_none() -> None:
    """Joined, these would be three objects on three lines."""
    lines = ['{"tags": ["a"', '"b"]}', '{"dep_delay": 1},{"dep_delay": 2}']
    assert decode_json(pa.array(lines), SCHEMA).bad_rows.tolist() == [0, 1, 2]


def test_what_has_to_be_there() -> None:
    schema = pa.schema(
        [
            pa.field("a", pa.int64(), nullable=False),
            pa.field("l", pa.list_(pa.field("item", pa.string(), nullable=False))),
        ]
    )
    lines = ['{"a": 1, "l": ["x"]}', '{"a": null}', "{}", '{"a": 1, "l": [null]}', '{"a": "1"}']
    decoded = decode_json(pa.array(lines), schema)
    assert decoded.good.to_pylist() == [{"a": 1, "l": ["x"]}, {"a": 1, "l": None}]
    assert decoded.reasons == [
        "column 'a': found null, expected an integer of 64 bits",
        "column 'a': found null, expected an integer of 64 bits",
        "column 'l[0]': found null, expected a string",
    ]


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.binary(), pa.large_binary(), pa.string_view()]
)
def test_kinds_of_arrays(kind: Any) -> None:
    lines = pa.array(['{"dep_delay": 1}', None, '{"dep_delay": 2}'], kind)
    for given in (lines, pa.chunked_array([lines]), lines.slice(2)):
        decoded = decode_json(given, SCHEMA.remove(1))
        assert decoded.good.column("dep_delay").to_pylist() in ([1, 2], [2])
    assert decode_json(lines.slice(0, 0), SCHEMA).good.schema.equals(SCHEMA)


def test_a_schema_of_no_columns() -> None:
    decoded = decode_json(pa.array(["{}", "{}", '{"a": 1}']), pa.schema([]))
    assert decoded.good.num_rows == 2
    assert decoded.bad_rows.tolist() == [2]


def test_what_is_no_array_of_lines() -> None:
    with pytest.raises(NotificationError, match="found an array of int64, expected an Arrow array"):
        decode_json(pa.array([1]), SCHEMA)
    with pytest.raises(NotificationError, match="found list, expected an Arrow array"):
        decode_json(["{}"], SCHEMA)
    with pytest.raises(AttributesError, match='expected "open", "keep", "drop"'):
        decode_json(pa.array(["{}"]), SCHEMA, extra="all")


ORDER = Attributes(
    {
        "tags": "list<string>",
        "lines": "list<struct<sku: string, price: double>>",
        "attrs": "map<string, double>",
        "days": "map<date, integer>",
        "`geo.zone`": "string",
        "zip code": "integer",
        "amount": "decimal(30, 20)",
    }
)


def _order(line: str, **more: Any) -> Any:
    decoded = decode_json(pa.array([line]), ORDER, **more)
    assert not decoded.reasons, decoded.reasons
    (row,) = decoded.good.drop_columns(["subject"]).to_pylist()
    return {name: value for name, value in row.items() if value is not None}


@pytest.mark.parametrize(
    ("line", "row"),
    [
        ('{"tags": ["a", null], "zip code": "7"}', {"tags": ["a", None], "zip code": 7}),
        ('{"tags": []}', {"tags": []}),
        ('{"lines": [{"sku": "x", "price": 1}, {"price": "2.5"}, null]}',
         {"lines": [{"sku": "x", "price": 1.0}, {"sku": None, "price": 2.5}, None]}),
        ('{"attrs": {"k": 1, "l": "2.5", "m": null}}',
         {"attrs": [("k", 1.0), ("l", 2.5), ("m", None)]}),
        ('{"attrs": {}, "days": {"2024-02-29": 5}}',
         {"attrs": [], "days": [(dt.date(2024, 2, 29), 5)]}),
        ('{"geo.zone": "EU"}', {"geo.zone": "EU"}),
        ('{"amount": 0.10000000000000000001}', {"amount": Decimal("0.10000000000000000001")}),
        ('{"amount": "0.10000000000000000001"}', {"amount": Decimal("0.10000000000000000001")}),
        ('{"amount": 5}', {"amount": Decimal(5)}),
        ('{"amount": 0.5, "zip code": "7"}', {"amount": Decimal("0.5"), "zip code": 7}),
    ],
)  # fmt: skip
def test_lists_maps_and_decimals(line: str, row: Any) -> None:
    assert _order(line) == row
    assert _order(line[:-1] + ', "other": 1}', extra="drop") == row  # the lenient decoder


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"tags": ["a", 5]}', "column 'tags[1]': found 5, expected a string"),
        ('{"tags": "a"}', "column 'tags': found \"a\", expected a list"),
        ('{"lines": [{"price": "x"}]}',
         "column 'lines[0].price': found \"x\", expected a double"),
        ('{"attrs": {"k": "x"}}', "column 'attrs.k': found \"x\", expected a double"),
        ('{"attrs": [1]}', "column 'attrs': found [1], expected a map"),
        ('{"days": {"soon": 1}}', "column 'days': found the key 'soon', expected a date"),
        ('{"amount": 1e40}', "column 'amount': found 1e40, expected a decimal(30, 20)"),
        ('{"amount": 0.123456789012345678901}',
         "column 'amount': found 0.123456789012345678901, expected a decimal(30, 20)"),
        ('{"amount": "NaN"}', "column 'amount': found \"NaN\", expected a decimal(30, 20)"),
        ('{"amount": true}', "column 'amount': found true, expected a decimal(30, 20)"),
        ('{"geo": {"zone": "EU"}}',
         "there is no column 'geo'; expected one of subject, tags, lines, attrs, days, geo.zone, "
         "zip code, amount"),
    ],
)  # fmt: skip
def test_parts_that_do_not_fit(line: str, reason: str) -> None:
    good = '{"tags": ["a"], "attrs": {"k": 1}, "amount": 1}'
    decoded = decode_json(pa.array([good, line, good]), ORDER)
    assert decoded.reasons == [reason]
    assert decoded.rows.tolist() == [0, 2]


NESTED = Attributes({"id": "integer", "user.city": "string", "lines": "list<struct<sku: string>>",
                     "by": "map<string, struct<a: int>>"})  # fmt: skip


@pytest.mark.parametrize(
    ("line", "extra", "count"),
    [
        ('{"id": 1}', None, 0),
        ('{"id": 1, "source": "web"}', '{"source":"web"}', 1),
        ('{"id": 1, "big": 123456789012345678901, "x": {"y": [1.50]}}',
         '{"big":123456789012345678901,"x":{"y": [1.50]}}', 2),
        ('{"user": {"city": "a", "age": 5}, "z": null}', '{"user":{"age":5},"z":null}', 2),
        ('{"lines": [{"sku": "a", "x": 1}, null, {"x": 2, "y": 3}]}',
         '{"lines":[{"x":1},null,{"x":2,"y":3}]}', 3),
        ('{"by": {"k": {"a": 1, "b": 2}, "l": {"a": 3}}}', '{"by":{"k":{"b":2}}}', 1),
    ],
)  # fmt: skip
def test_undeclared_fields_are_kept_and_counted(line: str, extra: str | None, count: int) -> None:
    lines = pa.array(['{"id": 7}', line, '{"id": "x", "z": 1}', '{"id": 8}'])
    decoded = decode_json(lines, NESTED, extra="keep")
    assert decoded.rows.tolist() == [0, 1, 3]
    found = [None] * 3 if decoded.extra is None else decoded.extra.to_pylist()
    assert found == [None, extra, None]
    assert (decoded.extra_rows, decoded.extra_fields) == (int(count > 0), count)
    dropped = decode_json(lines, NESTED, extra="drop")
    assert dropped.extra is None
    assert dropped.extra_fields == count
    assert dropped.good.equals(decoded.good)
    refused = decode_json(lines, NESTED)
    assert refused.bad_rows.tolist() == ([1, 2] if count else [2])
