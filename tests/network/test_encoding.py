"""What an agent encodes is what filters see: against `Filter.matches` on the values themselves."""

from __future__ import annotations

import datetime as dt
import enum
import random
import uuid
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tidings import Refusal, parse
from tidings.network.agents import encode_attributes, pairs_of
from tidings.notifications.content_formats import decode_content, is_json

BERLIN = dt.timezone(dt.timedelta(hours=1))
VALUES: list[Any] = [
    1, -7, 2**62, 2**80, 0.5, float("nan"), float("inf"), float("-inf"), True, None, "x", "",
    Decimal("95.50"), Decimal(90), Decimal("0.1"), dt.date(2024, 1, 2),
    dt.datetime(2024, 1, 2),  # noqa: DTZ001
    dt.datetime(2024, 1, 2, 3, 4, tzinfo=dt.UTC), dt.datetime(2024, 1, 2, tzinfo=BERLIN),
    np.float64(7.5), np.float32("nan"), np.int64(9), np.datetime64("2024-01-02"), [1, 2],
    ["x", None],
    (1, 2), [dt.date(2024, 1, 2)], {"w": float("nan")}, {"w": Decimal("5.5")}, np.array([1, 2]),
]  # fmt: skip
FILTERS = [
    "v > 5", "v < 5", "v = 95.5", "v = 0.1", "v IS NULL", "isnan(v)", "v > DATE '2024-01-01'",
    "v = DATE '2024-01-02'", "v < TIMESTAMP '2024-01-02 00:00:00'", "hour(v) = 0", "v = 'x'",
    "array_contains(v, 1)", "v.w > 5", "isnan(v.w)", "length(v) = 1", "v = true",
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_filters_see_the_values_themselves(value: Any) -> None:
    seen = decode_content(encode_attributes({"v": value, "other": 1}))
    for text in FILTERS:
        filter_ = parse(text)
        assert filter_.matches(seen) == filter_.matches({"v": value, "other": 1}), (text, seen)


def test_random_mixtures(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(300):
        event = {name: chance.choice(VALUES) for name in "vwx"}
        seen = decode_content(encode_attributes(event))
        for text in FILTERS:
            assert parse(text).matches(seen) == parse(text).matches(event), (text, event)


def test_json_where_json_will_do() -> None:
    assert encode_attributes({"a": 1, "b": {"c": [1.5, None]}}) == b'{"a":1,"b":{"c":[1.5,null]}}'
    assert encode_attributes({"a": Decimal("95.50")}) == b'{"a":95.5}'
    assert is_json(encode_attributes({"a": Decimal("1.0000000000000000000001")}))
    assert not is_json(encode_attributes({"a": float("nan")}))
    for given in (b'{"a":1}', bytearray(b'{"a":1}'), memoryview(b'{"a":1}')):
        assert encode_attributes(given) == b'{"a":1}'


def test_identifiers_and_enumerations() -> None:
    class Colour(enum.Enum):
        RED = "red"

    name = uuid.UUID(int=5)
    assert decode_content(encode_attributes({"a": name, "b": Colour.RED})) == {
        "a": str(name),
        "b": "red",
    }


def _deep() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for _ in range(2000):
        found = {"a": found}
    return found


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"a": b"x"}, "attribute a: found a value of type bytes, expected a number"),
        ({"a": object()}, "attribute a: found a value of type object, expected"),
        ({"a": {1: 2}}, "attribute a: found the key 1 in a mapping, expected a string"),
        ({5: 2}, "attribute 5: found the key 5 in a mapping, expected a string"),
        (_deep(), "attribute a: found more than 100 levels of nested values"),
        ([1], "found attributes of type list, expected a mapping, or bytes"),
        ({"a": "x\ud800"}, "attributes: found an unpaired surrogate, U+D800, expected valid"),
        ({"\udfff": [dt.date(2024, 1, 2)]}, "attributes: found an unpaired surrogate, U+DFFF, exp"),
        (
            {"a": Decimal("1.0000000000000000000001"), "b": dt.date(2024, 1, 2)},
            "attribute a: found a decimal that no double equals, in a notification that also",
        ),
    ],
)
def test_what_is_refused(given: Any, sentence: str) -> None:
    with pytest.raises(Refusal) as found:
        encode_attributes(given)
    assert str(found.value).startswith(sentence)
    assert "\n" not in str(found.value)


def test_arrow_rows_are_the_rows_of_the_table() -> None:
    table = pa.table(
        {
            "v": pa.array([1.5, float("nan"), None, float("inf")]),
            "d": pa.array([Decimal("95.50"), None, Decimal("1.00"), Decimal("2.00")]),
            "t": pa.array([dt.date(2024, 1, 2), None, dt.date(2024, 1, 3), dt.date(2023, 1, 3)]),
            "n": pa.array([{"w": float("nan"), "z": None}, None, {"w": 1.0, "z": 2}, None]),
        }
    )
    texts = ["v > 1", "isnan(v)", "d > 90", "t > DATE '2024-01-01'", "isnan(n.w)", "n.z = 2"]
    seen = [decode_content(encode_attributes(one)) for one, _ in pairs_of(table)]
    for text in texts:
        rows = table.to_pylist()
        filter_ = parse(text)
        assert [filter_.matches(one) for one in seen] == [filter_.matches(one) for one in rows]
    assert "z" not in seen[0]["n"]
    plain = pa.table({"v": [1.5, 2.0], "s": ["a", None]})
    assert [one for one, _ in pairs_of(plain)] == [b'{"v":1.5,"s":"a"}', b'{"v":2.0}']
