"""Declared attributes: what is refused, near misses, and notifications made to fit."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from tidings import Attributes, AttributesError, NotificationError, Ontology
from tidings.filters.language.attributes import article, family
from tidings.model import TYPES, Type

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
        ("a", "int", "'a' has the type 'int', expected one of boolean, integer, double"),
        ("a", "String", "'a' has the type 'String'"),
        ("a", None, "'a' has the type 'None'"),
        ("a", ["string"], r"'a' has the type '\['string'\]'"),
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
    *((kind, None, None) for kind in TYPES),
]


@pytest.mark.parametrize(("kind", "value", "expected"), READ)
def test_read(kind: Type, value: Any, expected: Any) -> None:
    alone = Attributes({"x": kind}).read({"x": value})
    assert repr(alone) == repr({"x": expected})
    nested = Attributes({"s.t.x": kind}).read({"s": {"t": {"x": value}}})
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
]


@pytest.mark.parametrize(("kind", "value", "reason"), UNFIT)
def test_what_does_not_fit(kind: Type, value: Any, reason: str) -> None:
    with pytest.raises(NotificationError, match=f"^attribute 'x': .*{reason}"):
        Attributes({"x": kind}).read({"x": value})
    if kind != "struct":
        with pytest.raises(NotificationError, match=f"^attribute 's.x': .*{reason}"):
            Attributes({"s.x": kind}).read({"s": {"x": value}})


def test_every_type_is_read_and_refused_above() -> None:
    assert {kind for kind, *_ in READ} == {kind for kind, *_ in UNFIT} == set(TYPES)


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
