"""Checks that a table has the columns that filters test, before anything runs.

A filter that tests a missing column, compares a string column with numbers, or takes the hour of a
string would silently never match. Each filter is checked on its own, and the message names the
column and the subscriptions.
"""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tidings.filters import Attributes, Misfit
from tidings.model import AttributesError, TidingsError, list_some
from tidings.snapshots import View

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

Path = tuple[str, ...]
MOST_SHOWN = 5  # columns that one message names
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


class MisfitWarning(UserWarning):
    """Some filters can't match a table, because its columns have other types."""


class NeverTrueWarning(UserWarning):
    """Some subscriptions can never match, whatever the table is."""


def warn_never(view: View) -> None:
    """Warn about subscriptions that can never match; the warning points at the caller of the
    calling function."""
    ids = view.never()
    if ids:
        many = "a subscription" if len(ids) == 1 else f"{len(ids):,} subscriptions"
        named = list_some([repr(id_) for id_ in ids], MOST_SHOWN)
        warnings.warn(f"{many} can never match: {named}", NeverTrueWarning, stacklevel=3)


def check_columns(
    schema: StructType, view: View, *, strict: bool = True, errors: str = "raise"
) -> list[str]:
    """Return the columns that filters test, in the order of the table.

    Raises AttributesError if a column is missing or has the wrong type: one that filters can't
    compare, one that differs from the type that a filter expects, or one that differs from the type
    that was declared when the filters were compiled. Without `strict`, a missing column counts as
    null. With `errors="collect"`, filters that expect another type are kept, although their tests
    of that column never pass, and a MisfitWarning names these filters.
    """
    if errors not in ("raise", "collect"):
        raise TidingsError(f"found errors={errors!r}, expected 'raise' or 'collect'")
    tested, attributes = view.matcher.list_tested(), view.matcher.attributes
    names = schema.fieldNames()
    wanted = {path[0] for path in tested}
    for name in names:
        if names.count(name) > 1 and name in wanted:
            raise AttributesError(f"the table has several columns '{name}', expected one")
    kinds: dict[Path, DataType] = {}
    for path in sorted(tested):
        try:
            kind = type_at(schema, path)
        except AttributesError as problem:
            if strict:
                raise AttributesError(f"{problem} {_name_readers(view, path)}") from None
            continue
        if family_of(kind) is None:
            raise AttributesError(
                f"filters test the column '{'.'.join(path)}', whose type {kind.simpleString()} "
                f"can't be compared {_name_readers(view, path)}"
            )
        _check_declared(kind, path, None if attributes is None else attributes.type(path))
        kinds[path] = kind
    misfits = view.misfits(ColumnTypes(kinds))
    if misfits:
        sentence = _describe_misfits(misfits, kinds)
        if errors == "raise":
            raise AttributesError(sentence)
        warnings.warn(f"{sentence}; these tests never pass", MisfitWarning, stacklevel=3)
    return [
        field.name
        for field in schema.fields
        if field.name in wanted and family_of(field.dataType) is not None
    ]


def check_declared_columns(schema: StructType, attributes: Attributes | None) -> None:
    """Raise AttributesError if a column does not have the declared type. Columns that
    are missing count as null."""
    for path in () if attributes is None else attributes:
        try:
            kind = type_at(schema, path)
        except AttributesError:
            continue
        _check_declared(kind, path, None if attributes is None else attributes.type(path))


class ColumnTypes:
    """The families of the columns of a table, for `misfits`."""

    def __init__(self, kinds: Mapping[Path, DataType]) -> None:
        self._families = {path: family_of(kind) for path, kind in kinds.items()}

    def type(self, path: Path) -> str | None:
        return self._families.get(path)


def _describe_misfits(misfits: Mapping[Misfit, Sequence[Any]], kinds: Mapping[Path, Any]) -> str:
    parts = []
    for one, ids in sorted(misfits.items(), key=lambda item: (item[0].path, item[0].describe())):
        found = f"the column '{'.'.join(one.path)}' is {kinds[one.path].simpleString()}"
        parts.append(f"{found}, but {one.describe()} ({_name_ids(ids)})")
    more = len(parts) - MOST_SHOWN
    return "; ".join(parts[:MOST_SHOWN]) + (f"; and {more} more such columns" if more > 0 else "")


def _name_readers(view: View, path: Path) -> str:
    return f"({_name_ids(view.readers(path))})"


def _name_ids(ids: Sequence[Any]) -> str:
    if len(ids) == 1:
        return f"subscription {ids[0]!r}"
    return f"{len(ids):,} subscriptions: {list_some(list(map(repr, ids)))}"


def _check_declared(kind: DataType, path: tuple[str, ...], declared: str | None) -> None:
    """Check the declared type, because filters were simplified with it: for an integer, `x > 1`
    became `x >= 2`."""
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


def type_at(schema: StructType, path: Path) -> DataType:
    """The type at a path. Below a list, a name is a field of every element, so the type is a list;
    below a map, a name is a key."""
    from pyspark.sql.types import ArrayType

    kind: DataType = schema
    lists = 0
    for depth, name in enumerate(path):
        while isinstance(kind, ArrayType):
            kind, lists = kind.elementType, lists + 1
        if kind.typeName() == "map":
            kind = _value_type(kind, path[:depth])
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
    for _ in range(lists):
        kind = ArrayType(kind)
    return kind


def _value_type(kind: Any, path: Path) -> DataType:
    if family_of(kind.keyType) != "string":
        raise AttributesError(
            f"filters test a key of '{'.'.join(path)}', which is {kind.simpleString()}; expected a "
            f"map whose keys are strings"
        )
    found: DataType = kind.valueType
    return found


def _list_columns(names: list[str]) -> str:
    shown = ", ".join(names[:8]) or "none"
    return f"its columns are {shown}" + (f" and {len(names) - 8} more" if len(names) > 8 else "")


def family_of(kind: DataType) -> str | None:
    """The family of comparable values that a type belongs to; None if filters can't test it."""
    name = kind.typeName()
    return "number" if name.startswith("decimal") else _FAMILIES.get(name.split("(")[0])
