"""Checks that a table has the columns that filters test, before anything runs.

A filter that tests a missing column, or compares a string column with numbers, would silently never
match. So such a table is refused, and the message names the column.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from tidings.filters import Attributes
from tidings.matching.segments import Tested
from tidings.model import AttributesError

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

_INTEGERS = {"byte", "short", "integer", "long"}
_NUMBERS = _INTEGERS | {"float", "double", "decimal"}
_FAMILIES = {
    **dict.fromkeys(_NUMBERS, "number"),
    **dict.fromkeys(("string", "char", "varchar"), "string"),
    **dict.fromkeys(("date", "timestamp", "timestamp_ntz"), "time"),
    "boolean": "boolean",
    "array": "list",
    "struct": "struct",
    "map": "struct",
    "void": "null",
}
_PLURAL = {
    "boolean": "booleans", "number": "numbers", "string": "strings", "time": "dates or times",
    "list": "lists",
}  # fmt: skip


def check_columns(
    schema: StructType, tested: Tested, attributes: Attributes | None = None, *, strict: bool = True
) -> list[str]:
    """Return the columns that filters test, in the order of the table.

    Raises AttributesError if a column is missing, has a type that filters can't compare, or differs
    from the type declared when the filters were compiled. Without `strict`, a missing column counts
    as null.
    """
    names = schema.fieldNames()
    wanted = {path[0] for path in tested}
    for name in names:
        if names.count(name) > 1 and name in wanted:
            raise AttributesError(f"the table has several columns '{name}', expected one")
    for path, families in sorted(tested.items()):
        try:
            kind = type_at(schema, path)
        except AttributesError:
            if strict:
                raise
            continue
        if kind is not None:
            _check(kind, path, families)
            _check_declared(kind, path, None if attributes is None else attributes.type(path))
    return [
        field.name
        for field in schema.fields
        if field.name in wanted and family_of(field.dataType) is not None
    ]


def _check(kind: DataType, path: tuple[str, ...], families: set[str]) -> None:
    found = family_of(kind)
    shown = ".".join(path)
    if found is None:
        raise AttributesError(
            f"filters test the column '{shown}', whose type {kind.simpleString()} can't be compared"
        )
    if families and found not in ("null", "struct") and found not in families:
        expected = " or ".join(sorted(_PLURAL[family] for family in families))
        raise AttributesError(
            f"the column '{shown}' is {kind.simpleString()}, but filters compare it with {expected}"
        )


def _check_declared(kind: DataType, path: tuple[str, ...], declared: str | None) -> None:
    """Check the declared type, for which filters were simplified: on an integer, `x > 1` became
    `x >= 2`."""
    name = kind.typeName().split("(")[0]
    if declared == "map" and name == "map":
        return
    whole = name in _INTEGERS or (name == "decimal" and kind.scale == 0)  # type: ignore[attr-defined]
    fits = {
        "integer": whole,
        "double": name in _NUMBERS,
        "decimal": name in _INTEGERS or name == "decimal",
        "date": name == "date",
        "timestamp": family_of(kind) == "time",
    }
    if declared is None or name == "void":
        return
    if not fits.get(declared, family_of(kind) == declared):
        raise AttributesError(
            f"the column '{'.'.join(path)}' is {kind.simpleString()}, but was declared as "
            f"{declared} when the filters were compiled"
        )


def type_at(schema: StructType, path: tuple[str, ...]) -> DataType | None:
    """The type of a column, or None for a path into a list."""
    kind: DataType = schema
    for depth, name in enumerate(path):
        if kind.typeName() == "array":
            return None
        if kind.typeName() == "map":
            kind = kind.valueType  # type: ignore[attr-defined]
            continue
        names = kind.fieldNames() if kind.typeName() == "struct" else []  # type: ignore[attr-defined]
        if name not in names:
            near = difflib.get_close_matches(name, names, n=3)
            hint = f"did you mean {' or '.join(near)}?" if near else _list_columns(names)
            raise AttributesError(
                f"filters test the column '{'.'.join(path[: depth + 1])}', which the table does "
                f"not have; {hint}"
            )
        kind = kind[name].dataType  # type: ignore[index]
    return kind


def _list_columns(names: list[str]) -> str:
    shown = ", ".join(names[:8]) or "none"
    return f"its columns are {shown}" + (f" and {len(names) - 8} more" if len(names) > 8 else "")


def family_of(kind: DataType) -> str | None:
    """The family of comparable values that a type belongs to; None if filters can't test it."""
    name = kind.typeName()
    return "number" if name.startswith("decimal") else _FAMILIES.get(name.split("(")[0])
