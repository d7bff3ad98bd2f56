"""Converts the columns of a table to declared types, including types inside structs, arrays and
maps.

    declared   lines: list<struct<price: double>>     attrs: map<string, double>
    table      lines: array<struct<sku: string, price: string>>     attrs: struct<k1: bigint, ...>
    result     lines: array<struct<sku: string, price: double>>     attrs: map<string, double>

Only a value that can't be converted becomes null; a cast of a whole array would make the array
null. Columns that are not declared, or whose shape is not the declared one, stay as they are. A
JSON object, which Spark reads as a struct with all keys that occur, becomes a map without the keys
that are null.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tidings.filters import Attributes
from tidings.model import DataType

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, types as t

_NESTED = ("array", "struct", "map", "binary", "variant")


def convert_columns(df: DataFrame, attributes: Attributes) -> tuple[DataFrame, set[str]]:
    """The table with declared columns converted to their types, and the names of these columns."""
    from pyspark.sql import functions as f

    chosen = []
    names = set[str]()
    for field in df.schema.fields:
        column = f.col(f"`{field.name.replace('`', '``')}`")
        declared = attributes.tree.get(field.name)
        if declared is not None:
            names.add(field.name)
            found = _convert(column, field.dataType, declared)
            column = column if found is None else found.alias(field.name)
        chosen.append(column)
    return df.select(*chosen), names


def _convert(column: Column, found: t.DataType, declared: DataType | None) -> Column | None:
    """The column converted to its declared type; None if it stays as it is."""
    from pyspark.sql import functions as f, types as t

    if declared is None:
        return None
    if declared.kind == "list" and isinstance(found, t.ArrayType):
        inner, element = found.elementType, declared.element
        if _convert(column, inner, element) is None:
            return None
        return f.transform(column, lambda one: _convert_or_keep(one, inner, element))
    if declared.kind == "struct" and isinstance(found, t.StructType):
        return _convert_struct(column, found, declared)
    if declared.kind == "map" and isinstance(found, t.MapType):
        value, wanted = found.valueType, declared.element
        if _convert(column, value, wanted) is None:
            return None
        return f.transform_values(column, lambda _, one: _convert_or_keep(one, value, wanted))
    if declared.kind == "map" and isinstance(found, t.StructType):
        return _as_map(column, found, declared)
    target = spark_type(declared)
    if target is None or found == target or found.typeName().split("(")[0] in _NESTED:
        return None
    return column.try_cast(target)


def _convert_or_keep(column: Column, found: t.DataType, declared: DataType | None) -> Column:
    converted = _convert(column, found, declared)
    return column if converted is None else converted


def _convert_struct(column: Column, found: t.StructType, declared: DataType) -> Column | None:
    from pyspark.sql import functions as f

    fields = [(one.name, column.getField(one.name), one.dataType) for one in found.fields]
    converted = {name: _convert(one, kind, declared.field(name)) for name, one, kind in fields}
    if all(one is None for one in converted.values()):
        return None
    parts = [_or(converted[name], one).alias(name) for name, one, _ in fields]
    return f.when(column.isNotNull(), f.struct(*parts))


def _as_map(column: Column, found: t.StructType, declared: DataType) -> Column | None:
    from pyspark.sql import functions as f

    value = None if declared.element is None else spark_type(declared.element)
    if value is None or not found.fields:
        return None
    pairs: list[Any] = []
    for one in found.fields:
        inner = column.getField(one.name)
        pairs += [
            f.lit(one.name),
            _convert_or_keep(inner, one.dataType, declared.element).cast(value),
        ]
    whole = f.map_filter(f.create_map(*pairs), lambda _, one: one.isNotNull())
    return f.when(column.isNotNull(), whole)


def _or(column: Column | None, other: Column) -> Column:
    return other if column is None else column


def spark_type(declared: DataType) -> t.DataType | None:
    """The Spark type for a declared type without parts; None for all other types."""
    from pyspark.sql import types as t

    if declared.kind == "decimal":
        return (
            t.DecimalType(declared.precision, declared.scale) if declared.precision < 39 else None
        )
    plain: dict[str, t.DataType] = {
        "boolean": t.BooleanType(), "integer": t.LongType(), "double": t.DoubleType(),
        "string": t.StringType(), "date": t.DateType(), "timestamp": t.TimestampType(),
    }  # fmt: skip
    return plain.get(declared.kind)
