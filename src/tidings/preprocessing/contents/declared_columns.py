"""The columns of declared attributes: each has its declared type, whatever the notifications have.

    plain types        JsonReader ──> columns          dates and times are first columns of texts
    all other types    msgspec, into one class ──> values ──> columns

A value is read as `Attributes.read` reads it, or not at all: the positions of values that don't fit
are returned. The columns can't hold the undeclared fields of a struct, so msgspec refuses them.

Some types have no columns, because a column would not give the same matches as single values: the
parser of decimals accepts other texts than `Attributes.read`, a decimal of 1.0 is not the number 1
in a computation, and filters find only those keys of maps in columns that are strings.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from tidings.filters import Attributes
from tidings.model import AttributesError
from tidings.notifications import FieldReader, arrow_schema, read_texts

_PLAIN: dict[str, type] = {"string": str, "integer": int, "double": float, "boolean": bool,
                           "date": str, "timestamp": str}  # fmt: skip
_TEXTS = ("date", "timestamp")


class DeclaredColumns:
    """What is needed to fill the columns of some attributes."""

    def __init__(self, attributes: Attributes, schema: pa.Schema) -> None:
        kinds = [kind.kind for kind in attributes.tree.values()]
        self.plain: dict[str, type] | None = None
        """The kinds of columns that kernels fill, by name; None if there are other types."""
        if all(kind in _PLAIN for kind in kinds):
            self.plain = {
                name: _PLAIN[kind] for name, kind in zip(attributes.tree, kinds, strict=True)
            }
        self.readers = {field.name: FieldReader(field, closed=True) for field in schema}
        """They turn the values that msgspec has read into columns."""
        self._texts = [at for at, kind in enumerate(kinds) if kind in _TEXTS]
        self._schema = schema

    def read_texts(self, columns: list[pa.Array]) -> set[int]:
        """Replace the columns of texts that are declared as dates or times. Returns the rows with
        texts that can't be read."""
        bad: set[int] = set()
        for at in self._texts:
            columns[at], wrong = read_texts(columns[at], self._schema.field(at).type)
            bad.update(wrong.tolist())
        return bad

    def read_values(self, values: list[list[Any]]) -> tuple[list[pa.Array], set[int]]:
        """The columns of values that msgspec has read, and the rows with values that don't fit."""
        columns: list[pa.Array] = []
        bad: set[int] = set()
        for reader, some in zip(self.readers.values(), values, strict=True):
            column, wrong = reader.column(some)
            columns.append(column)
            bad.update(wrong.tolist())
        return columns, bad


def make_columns(attributes: Attributes) -> DeclaredColumns | None:
    """None if the attributes can't be columns: a list or a struct may contain anything, a type has
    no columns that give the same matches, or msgspec can't give a field its name."""
    try:
        schema = arrow_schema(attributes)
    except AttributesError:
        return None
    fields = [inner for field in schema for inner in _all_fields(field)]
    if not all(_is_exact(field.type) and is_field_name(field.name) for field in fields):
        return None
    return DeclaredColumns(attributes, schema)


def is_field_name(name: str) -> bool:
    """Whether msgspec can give a field of a class this name in JSON. JSON writes all other names
    with escapes."""
    return not any(one < " " or one in '"\\' or "\ud800" <= one <= "\udfff" for one in name)


def _all_fields(field: pa.Field) -> Iterator[pa.Field]:
    """A field, and all fields inside it."""
    yield field
    for at in range(field.type.num_fields):
        yield from _all_fields(field.type.field(at))


def _is_exact(kind: pa.DataType) -> bool:
    """Whether a column of this type gives the same matches as its values one by one."""
    if pa.types.is_map(kind):
        return bool(pa.types.is_string(kind.key_type))
    return not pa.types.is_decimal(kind)
