"""Declared attributes: what is refused, near misses, and notifications made to fit."""

from __future__ import annotations

import datetime as dt
import json
import math
from decimal import Decimal
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from tidings import Attributes, AttributesError, NotificationError, Ontology
from tidings.filters.language.attributes import family
from tidings.model import TYPES, Type, article

DAY = dt.date(2024, 2, 29)
AT = dt.datetime(2024, 2, 29, 10, 30, tzinfo=dt.UTC)
MIDNIGHT = dt.datetime(2024, 2, 29, tzinfo=dt.UTC)
NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("name", "kind", "reason"),
    [
        ("", "string", "'' is not a valid name: a field in it is empty"),
        (".", "string", "'.' is not a valid name"),
        ("a.", "string", "'a.' is not a valid name"),
        (".a", "string", "'.a' is not a valid name"),
        ("a..b", "string", "'a..b' is not a valid name"),
        (
            "a",
            "strin",
            "'a' has the type 'strin': found 'strin' at character 1, expected a type: ",
        ),
        ("a", None, "'a' has the type 'None': found None, expected a type: boolean, integer"),
        ("a", ["string"], r"'a' has the type '\['string'\]'"),
        ("a", {}, "'a' has no fields, expected names with types"),
        ("`a", "string", "'`a' is not a valid name: a backtick is not closed"),
        ("a", "decimal", r"expected digits in brackets, such as decimal\(10, 2\)"),
        ("a", "map<string>", "expected ',' and the type of the values"),
    ],
)
def test_declarations_that_are_refused(name: str, kind: Any, reason: str) -> None:
    with pytest.raises(AttributesError, match=reason):
        Attributes({name: kind})


TOPICS = Ontology({"b": "a"})
DECLARED = Attributes({"price": "double", "user.home.city": "string", "topic": TOPICS})


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        (("price",), "double"),
        (("topic",), "string"),
        (("subject",), "string"),
        (("user",), "struct"),
        (("user", "home"), "struct"),
        (("user", "home", "city"), "string"),
        (("user.home.city",), None),
        (("city",), None),
    ],
)
def test_types(path: tuple[str, ...], kind: Type | None) -> None:
    assert DECLARED.type(path) == kind
    assert (path in DECLARED) is (kind is not None)


def test_ontologies() -> None:
    assert DECLARED.ontology(("topic",)) is TOPICS
    assert DECLARED.ontology(("price",)) is None


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        (("prise",), "there is no attribute 'prise'; did you mean price?"),
        (("PRICE",), "there is no attribute 'PRICE'; did you mean price"),
        (("user", "home", "town"), "did you mean user.home.city or user.home?"),
        (
            ("odd name",),
            "no attribute '`odd name`'; expected one of price, subject, topic, user.ho",
        ),
    ],
)
def test_a_name_that_is_not_declared(path: tuple[str, ...], hint: str) -> None:
    assert hint in (DECLARED.problem(path) or "")


def test_names_that_are_fine() -> None:
    assert DECLARED.problem(("price",)) is None
    assert DECLARED.problem(("user",)) is None
    assert Attributes({"price": "double"}, closed=False).problem(("prise",)) is None


def test_a_long_list_of_names_is_cut() -> None:
    many = Attributes({f"a{n}": "string" for n in range(9)})
    problem = many.problem(("zzzzz",)) or ""
    assert problem.endswith("expected one of a0, a1, a2, a3, a4, a5, a6, a7 and 2 more")


READ: list[tuple[Type, Any, Any]] = [
    ("boolean", True, True),
    ("boolean", "yes", True),
    ("boolean", np.bool_(False), False),
    ("integer", 5, 5),
    ("integer", "5", 5),
    ("integer", 5.0, 5),
    ("integer", -0.0, 0),
    ("integer", Decimal("5.0"), 5),
    ("integer", np.int32(5), 5),
    ("integer", 2.0**53, 2**53),
    ("double", 1.5, 1.5),
    ("double", 1, 1.0),
    ("double", "1.5", 1.5),
    ("double", "Infinity", INF),
    ("double", 2**70, 2.0**70),
    ("double", Decimal("0.5"), 0.5),
    ("string", "5", "5"),
    ("string", "", ""),
    ("date", DAY, DAY),
    ("date", "2024-02-29", DAY),
    ("date", MIDNIGHT, DAY),
    ("timestamp", AT, AT),
    ("timestamp", DAY, MIDNIGHT),
    ("timestamp", "2024-02-29T12:30+02:00", AT),
    ("list", [1, "a"], [1, "a"]),
    ("list", (1, 2), [1, 2]),
    ("list", np.array([1.5]), [1.5]),
    ("struct", {"a": 1}, {"a": 1}),
    ("decimal", 5, 5),
    ("decimal", 0.1, 0.1),
    ("decimal", "1.50", 1.5),
    ("decimal", Decimal("99999999.99"), 99999999.99),
    ("map", {"a": "1", "b": None}, {"a": 1.0, "b": None}),
    *((kind, None, None) for kind in TYPES),
]
WHOLE = {"decimal": "decimal(10, 2)", "map": "map<string, double>"}


@pytest.mark.parametrize(("kind", "value", "expected"), READ)
def test_read(kind: Type, value: Any, expected: Any) -> None:
    whole = WHOLE.get(kind, kind)
    alone = Attributes({"x": whole}).read({"x": value})
    assert repr(alone) == repr({"x": expected})
    nested = Attributes({"s.t.x": whole}).read({"s": {"t": {"x": value}}})
    assert repr(nested) == repr({"s": {"t": {"x": expected}}})


UNFIT: list[tuple[Type, Any, str]] = [
    ("boolean", 1, "found 1, an integer, expected a boolean"),
    ("boolean", "maybe", "'maybe' is not a boolean, expected a boolean"),
    ("integer", True, "found True, a boolean, expected an integer"),
    ("integer", 5.5, "found 5.5, a double, expected an integer"),
    ("integer", NAN, "found nan, a double"),
    ("integer", INF, "found inf, a double"),
    ("integer", 2.0**63, "found 9.22.*, a double"),
    ("integer", 2**63, "found 9.22.*, a double"),
    ("integer", "5.0", "'5.0' is not an integer, expected an integer"),
    ("integer", "9" * 19, "does not fit in 64 bits, expected an integer"),
    ("double", False, "found False, a boolean, expected a double"),
    ("double", "a lot", "'a lot' is not a number, expected a double"),
    ("string", 5, "found 5, an integer, expected a string"),
    ("string", DAY, "a date, expected a string"),
    ("date", 20240229, "found 20240229, an integer, expected a date"),
    ("date", "2024-02-30", "expected a date"),
    ("timestamp", 1.5, "found 1.5, a double, expected a timestamp"),
    ("timestamp", "noon", "'noon' is not a date or timestamp, expected a timestamp"),
    ("list", "a", "found 'a', a string, expected a list"),
    ("list", {"a": 1}, "a struct, expected a list"),
    ("struct", [1], r"found \[1\], a list, expected a struct"),
    ("struct", "a", "found 'a', a string, expected a struct"),
    ("string", b"a", "found b'a', expected a string"),  # none of our types
    ("decimal", 1.234, r"found 1.234, expected a decimal\(10, 2\)"),
    ("decimal", 123456789, r"found 123456789, expected a decimal\(10, 2\)"),
    ("decimal", "much", r"'much' is not a decimal, expected a decimal\(10, 2\)"),
    ("decimal", NAN, r"found nan, expected a decimal\(10, 2\)"),
    ("decimal", True, "found True, a boolean, expected a decimal"),
    ("map", [1], r"found \[1\], a list, expected a map"),
]


@pytest.mark.parametrize(("kind", "value", "reason"), UNFIT)
def test_what_does_not_fit(kind: Type, value: Any, reason: str) -> None:
    with pytest.raises(NotificationError, match=f"^attribute 'x': .*{reason}"):
        Attributes({"x": WHOLE.get(kind, kind)}).read({"x": value})
    if kind != "struct":
        with pytest.raises(NotificationError, match=f"^attribute 's.x': .*{reason}"):
            Attributes({"s.x": WHOLE.get(kind, kind)}).read({"s": {"x": value}})


def test_every_type_is_read_and_refused_above() -> None:
    assert {kind for kind, *_ in READ} == {kind for kind, *_ in UNFIT} == set(TYPES)


def test_an_element_is_named_by_its_number() -> None:
    nested = {"quotes": "list<struct<tags: list<string>>>"}
    found = {"quotes": [{"tags": ["a"]}, {"tags": ["b", None, 5]}]}
    with pytest.raises(NotificationError) as refused:
        Attributes(nested).read(found)
    expected = "attribute 'quotes[1].tags[2]': found 5, an integer, expected a string"
    assert str(refused.value) == expected


def test_a_long_value_is_cut() -> None:
    with pytest.raises(NotificationError) as refused:
        Attributes({"x": "integer"}).read({"x": ["a"] * 1000})
    assert len(str(refused.value)) < 150


def test_the_subject_is_a_string() -> None:
    assert Attributes({}).read({"subject": "a.b"}) == {"subject": "a.b"}
    with pytest.raises(NotificationError, match="'subject'"):
        Attributes({}).read({"subject": 5})


def test_what_is_not_declared_passes_through() -> None:
    other = object()
    assert DECLARED.read({"other": other, "price": "1"}) == {"other": other, "price": 1.0}
    assert DECLARED.read({}) == {}
    assert DECLARED.read({"user": {"age": 5}}) == {"user": {"age": 5}}
    assert DECLARED.read({"user": {"home": None}}) == {"user": {"home": None}}


def test_a_step_into_no_struct_is_refused() -> None:
    with pytest.raises(NotificationError, match="'user': found 5, an integer, expected a struct"):
        DECLARED.read({"user": 5})


def test_the_notification_itself_is_not_changed() -> None:
    declared = Attributes({"s.a": "integer", "s.b": "integer"})
    inner = {"a": "1", "b": "2", "c": 3}
    for event in ({"s": inner}, MappingProxyType({"s": MappingProxyType(inner)})):
        assert declared.read(event) == {"s": {"a": 1, "b": 2, "c": 3}}
        assert inner == {"a": "1", "b": "2", "c": 3}


@pytest.mark.parametrize(
    ("kind", "of", "text"),
    [
        ("integer", "number", "an integer"),
        ("double", "number", "a double"),
        ("date", "time", "a date"),
        ("timestamp", "time", "a timestamp"),
        ("string", "string", "a string"),
        ("boolean", "boolean", "a boolean"),
    ],
)
def test_families_and_articles(kind: str, of: str, text: str) -> None:
    assert (family(kind), article(kind)) == (of, text)
    assert family(None) is None


@pytest.mark.parametrize(
    ("types", "message"),
    [
        ({"a": "integer", "a.b": "string"}, "'a.b' is a field of 'a', which is an integer"),
        ({"subject": "integer"}, "'subject' has the type 'integer', expected string"),
    ],
)
def test_declarations_that_contradict_each_other(types: Any, message: str) -> None:
    with pytest.raises(AttributesError, match=message):
        Attributes(types)


def test_a_struct_must_be_one() -> None:
    declared = Attributes({"user.home.city": "string"})
    with pytest.raises(
        NotificationError, match=r"'user\.home': found 5, an integer, expected a st"
    ):
        declared.read({"user": {"home": 5}})
    assert declared.read({"user": None}) == {"user": None}
    assert declared.read({"user": {"home": None}}) == {"user": {"home": None}}


def test_a_time_of_day_is_no_date() -> None:
    with pytest.raises(NotificationError, match=r"found 2024-02-29 10:30:00\+00:00, a timestamp"):
        Attributes({"x": "date"}).read({"x": AT})


def test_the_lowest_integer_fits_as_a_double() -> None:
    assert Attributes({"n": "integer"}).read({"n": -(2.0**63)}) == {"n": -(2**63)}


ORDER = Attributes(
    {
        "tags": "list<string>",
        "lines": "list<struct<sku: string, price: double, sizes: list<int>>>",
        "attrs": "map<string, double>",
        "by_day": "map<date, struct<n: int>>",
        "`geo.zone`": "string",
        "zip code": "integer",
        "user": {"home": {"city": "string"}, "`e.mail`": "string"},
        "meta": "struct",
        "part": "struct<a: int, ...>",
    }
)


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        (("tags",), "list<string>"),
        (("lines",), "list<struct<sku: string, price: double, sizes: list<integer>>>"),
        (("lines", "price"), "list<double>"),
        (("lines", "sizes"), "list<list<integer>>"),
        (("attrs", "anything"), "double"),
        (("by_day", "2024-02-29", "n"), "integer"),
        (("by_day", "2024-02-29", "m"), None),
        (("geo.zone",), "string"),
        (("geo", "zone"), None),
        (("zip code",), "integer"),
        (("user", "home", "city"), "string"),
        (("user", "e.mail"), "string"),
        (("meta", "x"), None),
        (("part",), "struct<a: integer, ...>"),
    ],
)
def test_types_inside_types(path: tuple[str, ...], kind: str | None) -> None:
    found = ORDER.data_type(path)
    assert (None if found is None else str(found)) == kind


def test_what_filters_may_use_below_a_declared_name() -> None:
    free = [("meta", "x"), ("meta", "x", "y"), ("part", "b"), ("attrs", "k"), ("lines", "price")]
    assert [ORDER.problem(path) for path in free] == [None] * len(free)
    bound = [("lines", "prise"), ("user", "home", "town"), ("tags", "x"), ("attrs", "k", "x")]
    assert all(ORDER.problem(path) for path in bound)


def test_all_ways_to_declare_a_field_are_one() -> None:
    ways: list[Any] = [
        {"user.home.city": "string", "user.age": "int"},
        {"user": {"home": {"city": "string"}, "age": "int"}},
        {"user": "struct<home: struct<city: string>, age: int>"},
        {"user": {"home": "struct<city: string>"}, "user.age": "int"},
        "user = struct<home: struct<city string>, age: bigint>",
    ]
    assert len({repr(Attributes(way)) for way in ways}) == 1
    lists = [{"legs": "list", "legs.to": "string"}, {"legs": "list<struct<to: string>>"}]
    assert len({repr(Attributes(way)) for way in lists}) == 1


@pytest.mark.parametrize("attributes", [ORDER, DECLARED, Attributes({"a": "int"}, extra="drop")])
def test_a_stored_declaration_is_the_same(attributes: Attributes) -> None:
    stored = json.loads(json.dumps(attributes.to_declared()))
    again = Attributes.from_declared(stored)
    assert repr(again) == repr(attributes)
    assert again.to_declared() == stored


def test_all_problems_are_told() -> None:
    given: Any = {"a": "strin", "b": "int", "b.c": "int", "d..e": "int", "f": {"g": 5}}
    with pytest.raises(AttributesError) as refused:
        Attributes(given)
    assert [one.place for one in refused.value.problems] == [
        ("a",), ("d..e",), ("f", "g"), ("b.c",)
    ]  # fmt: skip
    assert len(str(refused.value).splitlines()) == 4


def test_parts_are_read_as_their_types() -> None:
    event = {
        "tags": ["a", None],
        "lines": [{"sku": "x", "price": 5, "other": 1}, None],
        "attrs": {"k": "1.5"},
        "`geo.zone`": 5,
    }
    assert ORDER.read(event) == {
        "tags": ["a", None],
        "lines": [{"sku": "x", "price": 5.0, "other": 1}, None],
        "attrs": {"k": 1.5},
        "`geo.zone`": 5,
    }
    with pytest.raises(NotificationError, match=r"'tags\[1\]': found 5, an integer"):
        ORDER.read({"tags": ["a", 5]})
    with pytest.raises(NotificationError, match=r"'lines\[0\]\.price': 'x' is not a number"):
        ORDER.read({"lines": [{"price": "x"}]})


EXTRA_EVENT = {"a": 1, "b": 2, "lines": [{"sku": "x", "c": 3}], "meta": {"y": 1}}


def test_what_happens_to_fields_that_are_not_declared() -> None:
    types = {"a": "integer", "lines": "list<struct<sku: string>>", "meta": "struct"}
    assert Attributes(types, extra="keep").read(EXTRA_EVENT) == EXTRA_EVENT
    assert Attributes(types, extra="open").read(EXTRA_EVENT) == EXTRA_EVENT
    dropped = Attributes(types, extra="drop")
    assert dropped.read(EXTRA_EVENT) == {"a": 1, "lines": [{"sku": "x"}], "meta": {"y": 1}}
    assert dropped.extra_fields(EXTRA_EVENT) == [("b",), ("lines", "c")]
    with pytest.raises(NotificationError, match="there is no attribute 'b'"):
        Attributes(types, extra="refuse").read(EXTRA_EVENT)
    assert Attributes(types, extra="open").problem(("b",)) is None
    assert Attributes(types, extra="keep").problem(("b",)) is not None
    with pytest.raises(AttributesError, match=r'extra is \'all\', expected "open", "keep", "drop"'):
        Attributes(types, extra="all")  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["9007199254740993e1", "9007199254740993E1", "90071992547409930"])
def test_decimals_with_16_digits_and_an_exponent_are_exact(text: str) -> None:
    attributes = Attributes({"x": "decimal(38,0)"})
    for given in (f'{{"x": {text}}}', f'{{"x": {text}}}'.encode()):
        assert attributes.decode(given)["x"] == Decimal(90071992547409930)
