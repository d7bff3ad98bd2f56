"""Data types: the full type of an attribute, including the types inside lists, structs and maps.

    boolean  integer  double  decimal(10, 2)  string  date  timestamp
    list<string>                                  its elements are strings
    struct<sku: string, price: double>            exactly these fields are declared
    struct<sku: string, ...>                      filters may use other fields too
    map<string, double>                           any key, with values of one type
    list  struct                                  elements or fields of any type

`str` writes a type as text, and `parse_type` in type_text.py parses this text. `DataType.kind` is
only the name of the type. It is for code that needs nothing else, such as a test for lists.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from tidings.model.types import Type

Path = tuple[str, ...]

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_UNSAFE = re.compile(r"[.`=<>(),:\n\r]|^\s|\s$|^$")  # a name that matches needs quotes


class Field(NamedTuple):
    """A field of a struct."""

    name: str
    type: DataType


class DataType(msgspec.Struct, frozen=True):
    """A type. Two types are equal if they have the same text."""

    kind: Type
    element: DataType | None = None
    """The type of a list's elements, or of a map's values; None if a list may contain anything."""
    key: DataType | None = None
    """The type of a map's keys."""
    fields: tuple[Field, ...] = ()
    """The fields of a struct, in order."""
    is_open: bool = False
    """Whether filters may use undeclared fields of a struct."""
    precision: int = 0
    """The digits of a decimal, and how many of them are after the point."""
    scale: int = 0

    def field(self, name: str) -> DataType | None:
        """The declared type of a field of a struct or of a key of a map, or None."""
        if self.kind == "map":
            return self.element
        return next((one.type for one in self.fields if one.name == name), None)

    def step(self, name: str) -> DataType | None:
        """The type of a path in a filter after a step from this type to the field `name`; None if
        the field is not declared. A path through a list gives a list: on
        list<struct<price: double>>, price is a list<double>."""
        inner: DataType | None = self
        lists = 0
        while inner is not None and inner.kind == "list":
            inner, lists = inner.element, lists + 1
        found = None if inner is None else inner.field(name)
        for _ in range(lists if found is not None else 0):
            found = DataType("list", found)
        return found

    def paths(self) -> Iterator[tuple[Path, DataType]]:
        """The paths of all declared fields below this type, with the types that `step` gives
        them."""
        inner: DataType | None = self
        while inner is not None and inner.kind == "list":
            inner = inner.element
        for name, _ in () if inner is None else inner.fields:
            kind = self.step(name)
            assert kind is not None
            yield (name,), kind
            for path, below in kind.paths():
                yield (name, *path), below

    def __str__(self) -> str:
        if self.kind == "decimal":
            return f"decimal({self.precision}, {self.scale})"
        if self.kind == "list" and self.element is not None:
            return f"list<{self.element}>"
        if self.kind == "map":
            return f"map<{self.key}, {self.element}>"
        if self.kind == "struct" and self.fields:
            fields = [f"{quote_field(name)}: {kind}" for name, kind in self.fields]
            return f"struct<{', '.join(fields + ['...'] * self.is_open)}>"
        return self.kind


def quote_field(name: str) -> str:
    """A field's name, in backticks unless it is an identifier."""
    return name if _PLAIN.fullmatch(name) else "`" + name.replace("`", "``") + "`"


def write_path(path: Path) -> str:
    """Write a path as in a declaration. A step is quoted only if it must be: the column `geo.zone`
    has a dot in its name, but geo.zone is the field zone of geo."""
    return ".".join(
        "`" + step.replace("`", "``") + "`" if _UNSAFE.search(step) else step for step in path
    )
