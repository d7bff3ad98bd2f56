"""Parses the types and names of declarations, in files, options and arguments alike.

    type     boolean | ... | decimal(10, 2) | list<type> | map<type, type> | struct<fields>
    fields   name: type, ...    a name that is not an identifier stands in `backticks`
    name     user.city          the field city of user
             `geo.zone`         one name with a dot in it

The parser also accepts the names that Spark and Arrow use for these types (`bigint`, `array<int>`,
`utf8`, `timestamp[us, tz=UTC]`, `list<item: string>`). Names of types are case-insensitive. Error
messages give the position.
"""

from __future__ import annotations

import difflib
import re
from typing import NoReturn

from tidings.model.data_types import DataType, Field, Path, quote_field
from tidings.model.errors import AttributesError
from tidings.model.types import Type

MOST_DIGITS = 76
"""The most digits that a decimal can have: Spark allows 38, Arrow 76."""
DEEPEST = 32

_ALIASES: dict[Type, str] = {
    "boolean": "boolean bool",
    "integer": "integer int bigint long smallint short tinyint byte "
    "int8 int16 int32 int64 uint8 uint16 uint32",
    "double": "double float real halffloat half_float float16 float32 float64",
    "string": "string utf8 large_utf8 large_string string_view utf8_view varchar char text",
    "date": "date date32 date64",
    "timestamp": "timestamp timestamp_ntz timestamp_ltz datetime",
    "decimal": "decimal numeric dec decimal32 decimal64 decimal128 decimal256",
    "list": "list array large_list fixed_size_list list_view large_list_view",
    "struct": "struct",
    "map": "map",
}
_NAMES: dict[str, Type] = {
    alias: kind for kind, aliases in _ALIASES.items() for alias in aliases.split()
}
EXPECTED = (
    "boolean, integer, double, decimal(10, 2), string, date, timestamp, list<...>, struct<...> or "
    "map<...>"
)
"""The types, as messages list them."""
_TOKEN = re.compile(r"\s*(?:(`(?:[^`]|``)*`)|([A-Za-z_0-9]+)|(\.\.\.)|(.))", re.DOTALL)
_UNITS = ("s", "ms", "us", "ns", "day")


def parse_type(text: str) -> DataType:
    """Read a type; raise AttributesError, with the position, if the text is not a type."""
    if not isinstance(text, str):
        raise AttributesError(f"found {text!r:.60}, expected a type: {EXPECTED}")
    return _Reader(text).whole()


def parse_name(text: str) -> Path:
    """Read the name of an attribute as a path; dots in backticks are part of a name."""
    steps: list[str] = []
    at = 0
    while True:
        if text[at : at + 1] == "`":
            found = re.compile(r"`((?:[^`]|``)*)`").match(text, at)
            if found is None:
                raise AttributesError(f"'{text}' is not a valid name: a backtick is not closed")
            steps.append(found[1].replace("``", "`"))
            at = found.end()
            if at < len(text) and text[at] != ".":
                raise AttributesError(
                    f"'{text}' is not a valid name: found '{text[at]}' after a backtick, "
                    "expected a dot or the end"
                )
        else:
            end = text.find(".", at)
            end = len(text) if end < 0 else end
            steps.append(text[at:end])
            at = end
        if not steps[-1]:
            raise AttributesError(f"'{text}' is not a valid name: a field in it is empty")
        if at >= len(text):
            return tuple(steps)
        at += 1


def parse_inline(text: str) -> list[tuple[str, str]]:
    """Read `name = type, name = type` as pairs; raise AttributesError for anything else.

    Commas inside brackets and backticks do not separate pairs.
    """
    pairs = []
    for part in _split_commas(text):
        name, equals, kind = _partition_equals(part)
        if not name or not equals or not kind:
            raise AttributesError(f"found '{part.strip()}', expected name=type")
        pairs.append((name, kind))
    return pairs


def _split_commas(text: str) -> list[str]:
    parts, depth, start, quoted = [], 0, 0, False
    for at, one in enumerate(text):
        if one == "`":
            quoted = not quoted
        elif quoted:
            continue
        elif one in "<([":
            depth += 1
        elif one in ">)]":
            depth -= 1
        elif one == "," and depth <= 0:
            parts.append(text[start:at])
            start = at + 1
    return [*parts, text[start:]]


def _partition_equals(part: str) -> tuple[str, str, str]:
    quoted = False
    for at, one in enumerate(part):
        if one == "`":
            quoted = not quoted
        elif one == "=" and not quoted:
            return part[:at].strip(), "=", part[at + 1 :].strip()
    return part.strip(), "", ""


class _Reader:
    """A recursive-descent parser of one text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.depth = 0

    def whole(self) -> DataType:
        found = self._type()
        if self._peek():
            self._fail("the end")
        return found

    # -- tokens --------------------------------------------------------------------------------

    def _peek(self) -> str:
        found = _TOKEN.match(self.text, self.at)
        return "" if found is None else found[found.lastindex or 0]

    def _take(self) -> str:
        found = _TOKEN.match(self.text, self.at)
        if found is None:
            return ""
        self.at = found.end()
        return found[found.lastindex or 0]

    def _need(self, mark: str, expected: str = "") -> None:
        if self._peek() != mark:
            self._fail(expected or f"'{mark}'")
        self._take()

    def _skip(self, mark: str) -> bool:
        there = self._peek() == mark
        if there:
            self._take()
        return there

    def _fail(self, expected: str) -> NoReturn:
        token = self._peek()
        place = self.at + len(self.text[self.at :]) - len(self.text[self.at :].lstrip())
        found = f"'{token}' at character {place + 1}" if token else "the end"
        raise AttributesError(f"found {found}, expected {expected}")

    # -- types ---------------------------------------------------------------------------------

    def _type(self) -> DataType:
        self.depth += 1
        if self.depth > DEEPEST:
            self._fail(f"types that are nested at most {DEEPEST} deep")
        word = self._peek().lower()
        kind = _NAMES.get(word)
        if kind is None:
            self._refuse(word)
        self._take()
        found = self._rest(word, kind)
        self.depth -= 1
        return found

    def _refuse(self, word: str) -> NoReturn:
        if word == "uint64":
            self._fail("decimal(20, 0), because a uint64 may not fit in a signed 64-bit integer")
        if word in ("null", "void"):
            self._fail("the type that the values will have, because null is not a type")
        near = difflib.get_close_matches(word, _NAMES, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        self._fail(f"a type: {EXPECTED}{hint}")

    def _rest(self, word: str, kind: Type) -> DataType:
        if kind == "decimal":
            return self._decimal(word)
        if kind == "list":
            return self._list(word)
        if kind == "map":
            return self._map()
        if kind == "struct":
            return self._struct()
        if kind == "string" and word in ("varchar", "char") and self._skip("("):
            self._number("a length", 1 << 31)
            self._need(")")
        if kind in ("timestamp", "date") and self._skip("["):
            self._unit()
        return DataType(kind)

    def _unit(self) -> None:
        if self._peek() not in _UNITS:
            self._fail(f"one of {', '.join(_UNITS)}")
        self._take()
        if self._skip(","):
            self._need("tz", "tz=")
            self._need("=")
            end = self.text.find("]", self.at)
            self.at = len(self.text) if end < 0 else end
        self._need("]")

    def _number(self, what: str, most: int) -> int:
        word = self._peek()
        if not (word.isascii() and word.isdigit()) or int(word) > most:
            self._fail(f"{what}, at most {most:,}")
        self._take()
        return int(word)

    def _decimal(self, word: str) -> DataType:
        self._need("(", f"digits in brackets, such as {word}(10, 2)")
        precision = self._number("a number of digits", MOST_DIGITS)
        scale = (
            self._number("a number of digits after the point", precision) if self._skip(",") else 0
        )
        if precision == 0:
            self._fail("at least one digit")
        self._need(")")
        return DataType("decimal", precision=precision, scale=scale)

    def _list(self, word: str) -> DataType:
        if not self._skip("<"):
            return DataType("list")
        before = self.at
        self._take()  # Arrow gives the elements a name: list<item: string>
        if not self._skip(":"):
            self.at = before
        element = self._type()
        self._need(">")
        if word == "fixed_size_list" and self._skip("["):
            self._number("a size", 1 << 31)
            self._need("]")
        return DataType("list", element)

    def _map(self) -> DataType:
        self._need("<", "the types of keys and values, such as map<string, double>")
        key = self._type()
        if key.kind in ("list", "struct", "map"):
            raise AttributesError(
                f"found {key} as the type of a map's keys, expected a scalar type"
            )
        self._need(",", "',' and the type of the values")
        element = self._type()
        self._need(">")
        return DataType("map", element, key)

    def _struct(self) -> DataType:
        if not self._skip("<"):
            return DataType("struct", is_open=True)
        fields: dict[str, DataType] = {}
        is_open = False
        while not is_open:
            if self._skip("..."):
                is_open = True
                break
            name = self._field_name()
            self._skip(":")  # in SQL there is no colon: struct<sku string>
            if name in fields:
                raise AttributesError(f"the field {quote_field(name)} is declared twice")
            fields[name] = self._type()
            if self._peek().lower() == "not":
                self._fail("',' or '>', because every value may be null")
            if not self._skip(","):
                break
        self._need(">", "',' or '>'")
        declared = tuple(Field(name, kind) for name, kind in fields.items())
        return DataType("struct", fields=declared, is_open=is_open)

    def _field_name(self) -> str:
        token = self._peek()
        if not re.fullmatch(r"[A-Za-z_0-9]+|`(?:[^`]|``)+`", token):
            self._fail("the name of a field, in `backticks` unless it is an identifier")
        self._take()
        return token[1:-1].replace("``", "`") if token[0] == "`" else token
