"""Marks beside the fields of a schema, where filters distinguish null from absent.

    schema   delay: int64     user: struct<city: string>
    marked   delay: int64     user: struct<city: string, "\\0null city": bool>      of user.city

A mark is true where JSON has an explicit null, and false where the field has a value or is absent.
Only marked fields cost anything: one Boolean and one comparison for each row.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import pyarrow as pa

from tidings.filters.language import Path
from tidings.model import NULL_MARK


@lru_cache(maxsize=64)
def mark_nulls(schema: pa.Schema, paths: frozenset[Path]) -> pa.Schema:
    """The schema with a mark for each of these paths that it has and that may be null."""
    return pa.schema(_mark_fields(schema, paths, ()), metadata=schema.metadata)


def _mark_fields(fields: Iterable[Any], paths: frozenset[Path], above: Path) -> list[Any]:
    out, marks = [], []
    for field in fields:
        path = (*above, field.name)
        out.append(field.with_type(_mark_type(field.type, paths, path)))
        if path in paths and field.nullable:
            marks.append(pa.field(NULL_MARK + field.name, pa.bool_()))
    return out + marks


def _mark_type(kind: Any, paths: frozenset[Path], path: Path) -> Any:
    if pa.types.is_struct(kind):
        return pa.struct(_mark_fields(kind, paths, path))
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_mark_type(kind.value_type, paths, path)))
    if pa.types.is_large_list(kind):
        return pa.large_list(kind.value_field.with_type(_mark_type(kind.value_type, paths, path)))
    return kind


def without_marks(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The same rows without marks; the same batch if it has none."""
    names = [name for name in batch.schema.names if not name.startswith(NULL_MARK)]
    fields = [_unmark_field(batch.schema.field(name)) for name in names]
    if fields == list(batch.schema):
        return batch
    arrays = [batch.column(field.name).cast(field.type) for field in fields]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields, batch.schema.metadata))


def _unmark_field(field: Any) -> Any:
    kind = field.type
    if pa.types.is_struct(kind):
        inner = [_unmark_field(one) for one in kind if not one.name.startswith(NULL_MARK)]
        return field.with_type(pa.struct(inner))
    if pa.types.is_list(kind):
        return field.with_type(pa.list_(_unmark_field(kind.value_field)))
    if pa.types.is_large_list(kind):
        return field.with_type(pa.large_list(_unmark_field(kind.value_field)))
    return field
