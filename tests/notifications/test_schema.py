"""Attributes as an Arrow schema, and schemas that can't be decoded with."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from tidings import Attributes, AttributesError, Ontology
from tidings.notifications import arrow_schema, decode_json
from tidings.notifications.schema import schema_of


def test_attributes_as_a_schema() -> None:
    attributes = Attributes(
        {
            "price": "double",
            "user.city": "string",
            "count": "integer",
            "user.address.since": "date",
            "legs": "list",
            "legs.to": "string",
            "ok": "boolean",
            "at": "timestamp",
            "topic": Ontology({"animal": ["cat"]}),
        }
    )
    address = pa.struct([("since", pa.date32())])
    assert arrow_schema(attributes).equals(
        pa.schema(
            [
                ("subject", pa.string()),
                ("price", pa.float64()),
                ("user", pa.struct([("city", pa.string()), ("address", address)])),
                ("count", pa.int64()),
                ("legs", pa.list_(pa.struct([("to", pa.string())]))),
                ("ok", pa.bool_()),
                ("at", pa.timestamp("us", "UTC")),
                ("topic", pa.string()),
            ]
        )
    )


def test_attributes_can_be_given_instead_of_a_schema() -> None:
    decoded = decode_json(
        pa.array(['{"price": 1, "subject": "a"}']), Attributes({"price": "double"})
    )
    assert decoded.good.to_pylist() == [{"subject": "a", "price": 1.0}]


@pytest.mark.parametrize(
    ("attributes", "what"),
    [
        ({"tags": "list"}, "'tags' is declared without types for the elements of this list"),
        (
            {"user.tags": "list"},
            "'user.tags' is declared without types for the elements of this list",
        ),
        ({"user": "struct"}, "'user' is declared without types for the fields of this struct"),
    ],
)
def test_attributes_that_do_not_say_enough(attributes: dict[str, Any], what: str) -> None:
    with pytest.raises(AttributesError, match=what):
        arrow_schema(Attributes(attributes))


@pytest.mark.parametrize(
    ("schema", "what"),
    [
        (pa.schema([("a", pa.float32())]), "'a' has the type float, expected one of boolean, an"),
        (pa.schema([("a", pa.timestamp("ns"))]), "'a' has the type timestamp.ns., expected"),
        (pa.schema([("a", pa.list_(pa.map_(pa.string(), pa.null())))]), "'a' has the type null"),
        (pa.schema([("a", pa.map_(pa.float16(), pa.string()))]), "'a' has the type halffloat"),
        (pa.schema([("a", pa.struct([("b", pa.uint64())]))]), "'a.b' has the type uint64"),
        (
            pa.schema([("a", pa.struct([]))]),
            "'a' is a struct without fields, expected at least one",
        ),
        (pa.schema([("a", pa.int64()), ("a", pa.string())]), "the column 'a' is declared twice"),
        ({"a": "integer"}, "found dict, expected a pyarrow.Schema or Attributes"),
    ],
)
def test_schemas_that_are_refused(schema: Any, what: str) -> None:
    with pytest.raises(AttributesError, match=what):
        schema_of(schema)


def test_the_metadata_of_a_schema_is_kept() -> None:
    plain = pa.schema([("a", pa.int64())])
    told = pa.schema([pa.field("a", pa.int64(), metadata={"unit": "min"})], metadata={"k": "v"})
    lines = pa.array(['{"a": 1}'])
    assert decode_json(lines, plain).good.schema.equals(plain, check_metadata=True)
    assert decode_json(lines, told).good.schema.equals(told, check_metadata=True)


@pytest.mark.parametrize("name", ["item", "element"])
def test_the_name_of_elements_is_kept(name: str) -> None:
    kind = pa.list_(pa.field(name, pa.struct([pa.field("b", pa.int64(), metadata={"n": name})])))
    decoded = decode_json(pa.array(['{"a": [{"b": 1}]}']), pa.schema([("a", kind)]))
    assert decoded.good.schema.field("a").type.value_field.name == name
    assert decoded.good.column(0).type.value_field.name == name
