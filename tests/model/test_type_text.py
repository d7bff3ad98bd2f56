"""Types and names in declarations: which are valid, and the messages for invalid ones."""

from __future__ import annotations

import random
from contextlib import suppress

import pytest

from tidings import AttributesError
from tidings.model import DataType, Field, parse_inline, parse_name, parse_type, write_path

READ = {
    "string": "string utf8 STRING large_utf8 large_string string_view varchar(20) char(3) text",
    "integer": "integer int bigint long smallint tinyint int8 int64 uint32 INT",
    "double": "double float real float64 halffloat",
    "boolean": "boolean bool",
    "date": "date date32 date32[day] date64[ms]",
    "timestamp": "timestamp timestamp_ntz timestamp[us] timestamp[ns,tz=Europe/Berlin]",
    "decimal(10, 2)": "decimal(10,2) numeric(10,2) DECIMAL(10,2) decimal128(10,2)",
    "decimal(5, 0)": "decimal(5) dec(5,0)",
    "list": "list array",
    "list<integer>": "list<int> array<bigint> large_list<item:int64> fixed_size_list<x:int8>[3]",
    "struct": "struct",
    "map<string, double>": "map<string,double> MAP<utf8,float>",
}


@pytest.mark.parametrize(
    ("text", "expected"), [(text, kind) for kind, texts in READ.items() for text in texts.split()]
)
def test_names_of_spark_and_arrow(text: str, expected: str) -> None:
    assert str(parse_type(text)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "list<struct<sku: string, price: double>>",
        "struct<`zip code`: integer, `geo.zone`: string, `a``b`: list<list<boolean>>>",
        "map<date, map<string, list<struct<a: decimal(38, 18), ...>>>>",
    ],
)
def test_a_type_is_written_as_it_is_read(text: str) -> None:
    assert str(parse_type(text)) == text


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "found the end, expected a type: boolean, integer"),
        ("strin", "found 'strin' at character 1, .*did you mean string"),
        ("list<struct<sku: strin>>", "found 'strin' at character 18, expected a type"),
        ("list<string", "found the end, expected '>'"),
        ("list<string>>", "found '>' at character 13, expected the end"),
        ("struct<a: int, a: int>", "the field a is declared twice"),
        ("struct<a: int not null>", "found 'not' at character 15, .*every value may be null"),
        ("struct<a.b: int>", "found '.' at character 9"),
        ("map<list<int>, int>", "found list<integer> as the type of a map's keys"),
        ("decimal", r"found the end, expected digits in brackets, such as decimal\(10, 2\)"),
        ("decimal(2, 3)", "found '3' at character 12, .* digits after the point, at most 2"),
        ("decimal(77, 3)", "expected a number of digits, at most 76"),
        ("uint64", r"expected decimal\(20, 0\)"),
        ("null", "expected the type that the values will have"),
        ("list<" * 40, "expected types that are nested at most 32 deep"),
    ],
)
def test_a_type_that_is_refused(text: str, reason: str) -> None:
    with pytest.raises(AttributesError, match=reason):
        parse_type(text)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("a", ("a",)),
        ("user.city", ("user", "city")),
        ("`geo.zone`", ("geo.zone",)),
        ("a.`b.c`.d", ("a", "b.c", "d")),
        ("zip code", ("zip code",)),
        ("`a``b`", ("a`b",)),
        ("größe", ("größe",)),
    ],
)
def test_names(text: str, path: tuple[str, ...]) -> None:
    assert parse_name(text) == path
    assert parse_name(write_path(path)) == path


@pytest.mark.parametrize("text", ["", ".", "a.", "a..b", "`a", "``", "`a`b", "a.`"])
def test_names_that_are_refused(text: str) -> None:
    with pytest.raises(AttributesError, match="is not a valid name: "):
        parse_name(text)


def test_a_declaration_on_one_line() -> None:
    text = "a=list<struct<x: int, y: map<string, int>>>, `b=c,` = decimal(3,1),d.e=date"
    assert parse_inline(text) == [
        ("a", "list<struct<x: int, y: map<string, int>>>"),
        ("`b=c,`", "decimal(3,1)"),
        ("d.e", "date"),
    ]
    for bad in ("a", "a=", "=int", "a=int,,b=int"):
        with pytest.raises(AttributesError, match="expected name=type"):
            parse_inline(bad)


def _draw(draws: random.Random, depth: int = 0) -> DataType:
    kind = draws.choice(["integer", "string", "decimal", "list", "struct", "map", "date"])
    if kind in ("list", "map") and depth < 4:
        key = DataType("string") if kind == "map" else None
        return DataType(kind, _draw(draws, depth + 1), key)  # type: ignore[arg-type]
    if kind == "struct" and depth < 4:
        names = draws.sample(["a", "B_1", "zip code", "geo.zone", "`", "not", "größe", "1"], 3)
        fields = tuple(Field(name, _draw(draws, depth + 1)) for name in names)
        return DataType("struct", fields=fields, is_open=draws.random() < 0.3)
    if kind == "decimal":
        precision = draws.randint(1, 38)
        return DataType("decimal", precision=precision, scale=draws.randint(0, precision))
    return DataType("double")


def test_any_type_is_read_as_it_was_written(seed: int) -> None:
    draws = random.Random(seed)
    for _ in range(500):
        kind = _draw(draws)
        assert parse_type(str(kind)) == kind


def test_damaged_types_are_read_or_refused(seed: int) -> None:
    draws = random.Random(seed)
    for _ in range(500):
        text = list(str(_draw(draws)))
        for _ in range(draws.randint(1, 3)):
            text[draws.randrange(len(text))] = draws.choice("<>(),:.` ax0")
        with suppress(AttributesError):  # nothing else may be raised
            kind = parse_type("".join(text))
            assert parse_type(str(kind)) == kind
