"""The schema by which rows are decoded: an Arrow schema that has only the types that tidings
supports.

    boolean  integer        double   decimal     string         date    timestamp
    bool     int8 .. int64  float64  128 or 256  string, large  date32  us, any zone
    list           struct    map
    list<>, large  struct<>  map<>

A schema says more than `Attributes` can: the width of an integer, and, with `nullable=False`, that
a value is required. `arrow_schema` derives a schema from attributes, if they also declare the types
of list elements and of the fields of structs. A timestamp without a zone is in UTC.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import pyarrow as pa

from tidings.filters import Attributes
from tidings.filters.language import Path, article, name_text
from tidings.model import AttributesError, DataType, Type

_ARROW = {"boolean": pa.bool_(), "integer": pa.int64(), "double": pa.float64(),
          "string": pa.string(), "date": pa.date32(),
          "timestamp": pa.timestamp("us", "UTC")}  # fmt: skip
_EXPECTED = (
    "boolean, an integer, double, decimal, string, date32, timestamp[us], a list, a struct or a map"
)


def arrow_schema(attributes: Attributes) -> pa.Schema:
    """The schema of declared attributes.

    Raise AttributesError if the type of a list's elements or of a struct's fields is not declared.
    """
    return pa.schema([(name, arrow_type(kind, (name,))) for name, kind in attributes.tree.items()])


def arrow_type(kind: DataType, path: Path) -> Any:
    """The Arrow type of a declared type."""
    if kind.kind == "decimal":
        make = pa.decimal128 if kind.precision <= 38 else pa.decimal256
        return make(kind.precision, kind.scale)
    if kind.kind == "list":
        if kind.element is None:
            raise _bare(path, "the elements of this list", "list<string>")
        return pa.list_(arrow_type(kind.element, path))
    if kind.kind == "map":
        assert kind.key is not None
        assert kind.element is not None
        return pa.map_(arrow_type(kind.key, path), arrow_type(kind.element, path))
    if kind.kind == "struct":
        if not kind.fields:
            raise _bare(path, "the fields of this struct", "struct<city: string>")
        return pa.struct([(name, arrow_type(one, (*path, name))) for name, one in kind.fields])
    return _ARROW[kind.kind]


def _bare(path: Path, what: str, example: str) -> AttributesError:
    return AttributesError(
        f"'{name_text(path)}' is declared without types for {what}, expected a type such as "
        f"{example}"
    )


def schema_of(declared: pa.Schema | Attributes) -> pa.Schema:
    """The schema of a declaration, after a check that tidings supports all of its types and that
    no name occurs twice."""
    schema = arrow_schema(declared) if isinstance(declared, Attributes) else declared
    if not isinstance(schema, pa.Schema):
        raise AttributesError(
            f"found {type(schema).__name__}, expected a pyarrow.Schema or Attributes"
        )
    _check(schema)
    return schema


@lru_cache(maxsize=64)
def _check(schema: pa.Schema) -> None:
    _check_fields((), schema)


def _check_fields(path: Path, fields: Iterable[Any]) -> None:
    names = set()
    for field in fields:
        inner = (*path, field.name)
        if field.name in names:
            raise AttributesError(f"the column '{name_text(inner)}' is declared twice")
        names.add(field.name)
        _check_type(inner, field.type)


def _check_type(path: Path, kind: Any) -> None:
    while type_name(kind) in ("list", "map"):
        if pa.types.is_map(kind):
            _check_type(path, kind.key_type)
            kind = kind.item_type
        else:
            kind = kind.value_type
    if type_name(kind) is None:
        raise AttributesError(
            f"'{name_text(path)}' has the type {kind}, expected one of {_EXPECTED}"
        )
    if pa.types.is_struct(kind):
        if kind.num_fields == 0:
            raise AttributesError(
                f"'{name_text(path)}' is a struct without fields, expected at least one"
            )
        _check_fields(path, kind)


def type_name(kind: Any) -> Type | None:
    """The name of an Arrow type in tidings, or None if the type is not supported."""
    is_ = pa.types
    if is_.is_boolean(kind):
        return "boolean"
    if is_.is_signed_integer(kind):
        return "integer"
    if is_.is_float64(kind):
        return "double"
    if is_.is_decimal128(kind) or is_.is_decimal256(kind):
        return "decimal"
    if is_.is_string(kind) or is_.is_large_string(kind):
        return "string"
    if is_.is_date32(kind):
        return "date"
    if is_.is_timestamp(kind) and kind.unit == "us":
        return "timestamp"
    if is_.is_list(kind) or is_.is_large_list(kind):
        return "list"
    if is_.is_map(kind):
        return "map"
    return "struct" if is_.is_struct(kind) else None


def describe_type(kind: Any) -> str:
    """An Arrow type in words: `an integer of 32 bits`."""
    name = type_name(kind) or "value"
    if name == "decimal":
        return f"a decimal({kind.precision}, {kind.scale})"
    return f"an integer of {kind.bit_width} bits" if name == "integer" else article(name)


def describe_path(path: tuple[str | int, ...]) -> str:
    """A path as text; an integer in the path is a position in a list: `legs[2].to`."""
    text = ""
    for step in path:
        part = f"[{step}]" if isinstance(step, int) else name_text((step,))
        text += part if isinstance(step, int) or not text else f".{part}"
    return text


def describe_unknown_column(path: tuple[str | int, ...], known: Iterable[str]) -> str:
    """One sentence about an undeclared name; it suggests declared names with a similar spelling."""
    above, name = path[:-1], str(path[-1])[:100]
    names = tuple(known)
    near = " or ".join(describe_path((*above, one)) for one in _find_near(name, names))
    hint = f"did you mean {near}?" if near else f"expected {_list_some(names)}"
    return f"there is no column '{describe_path((*above, name))}'; {hint}"


@lru_cache(maxsize=1024)  # cached, because an unknown field usually occurs in every row
def _find_near(name: str, known: tuple[str, ...]) -> tuple[str, ...]:
    names = {one.lower(): one for one in known}
    return tuple(names[one] for one in difflib.get_close_matches(name.lower(), names, n=3))


def _list_some(names: tuple[str, ...]) -> str:
    if not names:
        return "no fields"
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    return "one of " + ", ".join(names[:8]) + more
