"""Infers types, from the values of a sample or from an Arrow or Spark schema.

    {"id": 1, "at": "2024-02-29T10:30Z", "tags": ["a"], "price": 5}
    {"id": 2, "at": null, "price": 9.5}                    id: integer    at: timestamp
                                                           tags: list<string>    price: double

A `Guess` collects values one by one; its `type` is a type to which all of them belong. A field
of strings counts as a date or timestamp only if each of its strings can be parsed as one. An object
counts as a map if its keys differ from row to row and its values have one type. If no type fits all
values (a number in one row, a string in the next), the field has a reason instead of a type.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from tidings.model.data_types import DataType, Field, quote_field, write_path
from tidings.model.errors import AttributesError
from tidings.model.toml_strings import toml_key, toml_text
from tidings.model.type_text import parse_type
from tidings.model.types import read_value, type_of
from tidings.model.values import normalise

MOST_KEYS = 64  # an object may be a map if it has more distinct keys than this
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_TIME = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}", re.ASCII)


class Guess:
    """What the values of one field have in common."""

    def __init__(self) -> None:
        self.seen: dict[str, int] = {}  # how often each type was seen
        self.rows = 0  # how many structs were seen
        self._fields: dict[str, Guess] = {}
        self._element: Guess | None = None

    def look(self, value: Any) -> None:
        """Include one more value in the guess."""
        value = normalise(value)
        kind = "null" if value is None else _kind_of(value)
        self.seen[kind] = self.seen.get(kind, 0) + 1
        if kind == "list":
            self._element = self._element or Guess()
            for one in value:
                self._element.look(one)
        elif kind == "struct":
            self.rows += 1
            for name, one in value.items():
                self._fields.setdefault(str(name), Guess()).look(one)

    @property
    def fields(self) -> Mapping[str, Guess]:
        """The fields of the structs, in the order of their first occurrence."""
        return self._fields

    @property
    def type(self) -> DataType | None:
        """The type that fits all values. If no type fits all of them, the result is None, and
        `reason` says why."""
        kinds = set(self.seen) - {"null"}
        if kinds == {"list"}:
            element = None if self._element is None else self._element.type
            return None if element is None else DataType("list", element)
        if kinds == {"struct"}:
            return self._struct()
        for fitting, kind in _JOINED:
            if kinds and kinds <= fitting:
                return DataType(kind)  # type: ignore[arg-type]
        return None

    def _struct(self) -> DataType | None:
        if self._is_map():
            values = Guess.of_all(self._fields.values())
            found = values.type
            if found is not None:
                return DataType("map", found, DataType("string"))
        typed = [(name, one.type) for name, one in self._fields.items()]
        fields = tuple(Field(name, kind) for name, kind in typed if kind is not None)
        if not fields:
            return None
        return DataType("struct", fields=fields)

    def _is_map(self) -> bool:
        counts = [sum(one.seen.values()) for one in self._fields.values()]
        return len(counts) > MOST_KEYS and max(counts) <= self.rows / 2

    @classmethod
    def of_all(cls, guesses: Iterable[Guess]) -> Guess:
        """Combine the guesses about several fields into one."""
        joined = cls()
        for guess in guesses:
            joined.rows += guess.rows
            for kind, count in guess.seen.items():
                joined.seen[kind] = joined.seen.get(kind, 0) + count
            if guess._element is not None:
                known = [one for one in (joined._element, guess._element) if one is not None]
                joined._element = cls.of_all(known)
            for name, inner in guess._fields.items():
                known = [one for one in (joined._fields.get(name), inner) if one is not None]
                joined._fields[name] = cls.of_all(known)
        return joined

    @property
    def reason(self) -> str:
        """In a few words, why there is no type."""
        kinds = sorted(set(self.seen) - {"null"})
        if not kinds:
            return "only nulls"
        if kinds == ["list"]:
            inside = "" if self._element is None or not self._element.seen else self._element.reason
            return f"lists of {inside}" if inside else "only empty lists"
        if kinds == ["struct"]:
            return "objects without typed fields"
        return "mixed: " + " and ".join(kinds)


_JOINED: list[tuple[set[str], str]] = [
    ({"boolean"}, "boolean"), ({"integer"}, "integer"), ({"integer", "double"}, "double"),
    ({"integer", "double", "decimal"}, "double"), ({"date"}, "date"),
    ({"date", "timestamp"}, "timestamp"), ({"string", "date", "timestamp"}, "string"),
]  # fmt: skip


def _kind_of(value: Any) -> str:
    kind = type_of(value)
    if kind != "string":
        return kind or "unknown"
    for shape, name in ((_TIME, "timestamp"), (_DAY, "date")):
        found = shape.match(value) if name == "timestamp" else shape.fullmatch(value)
        if found:
            try:
                read_value(value, name)  # type: ignore[arg-type]
            except ValueError:
                return "string"
            return name
    return "string"


def look_at_rows(rows: Iterable[Mapping[str, Any]]) -> Guess:
    """Guess types from rows; the result is a guess whose `fields` are the attributes."""
    guess = Guess()
    for row in rows:
        guess.look(row)
    return guess


def type_of_arrow(kind: Any) -> DataType:
    """The type that corresponds to an Arrow type; raises AttributesError if filters can't use
    it."""
    name = str(kind).partition("<")[0]
    if name == "dictionary":
        return type_of_arrow(kind.value_type)
    if name == "map":
        return DataType("map", type_of_arrow(kind.item_type), type_of_arrow(kind.key_type))
    if name == "struct":
        fields = [kind.field(at) for at in range(kind.num_fields)]
        return DataType(
            "struct", fields=tuple(Field(one.name, type_of_arrow(one.type)) for one in fields)
        )
    if hasattr(kind, "value_type"):
        return DataType("list", type_of_arrow(kind.value_type))
    if name == "uint64":
        return DataType("decimal", precision=20)
    return parse_type(str(kind))


def type_of_spark(kind: Any) -> DataType:
    """The type that corresponds to a Spark type; raises AttributesError if filters can't use it."""
    name = kind.typeName()
    if name == "array":
        return DataType("list", type_of_spark(kind.elementType))
    if name == "map":
        return DataType("map", type_of_spark(kind.valueType), type_of_spark(kind.keyType))
    if name == "struct":
        return DataType(
            "struct", fields=tuple(Field(one.name, type_of_spark(one.dataType)) for one in kind)
        )
    return parse_type(kind.simpleString())


def types_of_fields(
    fields: Iterable[tuple[str, Any]], read: Any
) -> tuple[dict[str, DataType], dict[str, str]]:
    """The types of the fields that filters can use; for each field that filters can't use, the
    reason."""
    types: dict[str, DataType] = {}
    reasons: dict[str, str] = {}
    for name, kind in fields:
        try:
            types[name] = read(kind)
        except AttributesError:
            reasons[name] = f"the type {kind} can't be declared"
    return types, reasons


def write_declaration(types: Mapping[str, DataType], reasons: Mapping[str, str]) -> str:
    """Write a declaration as TOML that can be pasted into a file. Fields without a type become
    comments."""
    lines = [f"{_toml_name(name)} = {toml_text(str(kind))}" for name, kind in types.items()]
    lines += [f"# {quote_field(name)}: {_one_line(why)}" for name, why in reasons.items()]
    return "\n".join(lines) + "\n"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _toml_name(name: str) -> str:
    return name if toml_key(name) == name else toml_text(write_path((name,)))
