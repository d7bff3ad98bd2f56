"""Marks beside the fields of a schema, for filters that distinguish null from absent.

    schema   delay: int64     user: struct<city: string>
    marked   delay: int64     user: struct<city: string, "\\0null city": bool>      of user.city

A mark is true if the field is explicitly null in JSON, and false if the field has a value or is
absent. Only marked fields have a cost: one Boolean and one comparison for each row. A null cell
without a mark counts as absent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

import pyarrow as pa

from tidings.filters.language import Path
from tidings.model import NULL_MARK


@lru_cache(maxsize=64)
def mark_nulls(schema: pa.Schema, paths: frozenset[Path]) -> pa.Schema:
    """Add marks to a schema, for those of these paths that exist in the schema and may be null."""
    return pa.schema(_mark_fields(schema, paths), metadata=schema.metadata)


def _mark_fields(fields: Iterable[Any], paths: frozenset[Path]) -> list[Any]:
    out, marks = [], []
    for field in fields:
        below = frozenset(path[1:] for path in paths if path and path[0] == field.name)
        out.append(field.with_type(_mark_type(field.type, below)))
        if () in below and field.nullable:
            marks.append(pa.field(NULL_MARK + field.name, pa.bool_()))
    return out + marks


def _mark_type(kind: Any, paths: frozenset[Path]) -> Any:
    """Add marks for these paths to the type above them. The values of a map need no marks: the key
    of a null value is in the map, and the key of an absent value is not."""
    if pa.types.is_struct(kind):
        return pa.struct(_mark_fields(kind, paths))
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_mark_type(kind.value_type, paths)))
    if pa.types.is_large_list(kind):
        return pa.large_list(kind.value_field.with_type(_mark_type(kind.value_type, paths)))
    if pa.types.is_map(kind):
        inner = _mark_type(kind.item_type, frozenset(path[1:] for path in paths if path))
        return pa.map_(kind.key_field, kind.item_field.with_type(inner))
    return kind


def without_marks(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Remove the marks from a batch; a batch without marks is returned as it is."""
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
    if pa.types.is_map(kind):
        return field.with_type(pa.map_(kind.key_field, _unmark_field(kind.item_field)))
    return field


@lru_cache(maxsize=256)
def cell_cleaner(kind: Any) -> Callable[[Any], Any] | None:
    """Return a function that converts a value of this type, in which structs and maps are dicts, to
    the value of an event. The function removes marks, and those null cells of structs that are not
    marked. Nulls in lists and maps remain. Return None if there is nothing to remove."""
    is_ = pa.types
    if is_.is_list(kind) or is_.is_large_list(kind) or is_.is_fixed_size_list(kind):
        element = cell_cleaner(kind.value_type)
        return None if element is None else lambda v: None if v is None else [*map(element, v)]
    if pa.types.is_map(kind):
        item = cell_cleaner(kind.item_type)
        if item is None:
            return None
        return lambda v: None if v is None else {key: item(one) for key, one in v.items()}
    if not pa.types.is_struct(kind):
        return None
    inner = {field.name: cell_cleaner(field.type) for field in kind}
    names = [name for name in inner if not name.startswith(NULL_MARK)]

    def clean(value: Any) -> Any:
        if value is None:
            return None
        out = {}
        for name in names:
            one = value[name]
            if one is not None:
                below = inner[name]
                out[name] = one if below is None else below(one)
            elif value.get(NULL_MARK + name) is True:
                out[name] = None
        return out

    return clean
