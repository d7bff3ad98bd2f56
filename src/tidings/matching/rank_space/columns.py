"""The column of a term in a batch of events; it is read from an attribute, or computed.

A term that reads one attribute is computed once per distinct value. Arrow computes a term if its
result is exactly what the language defines; all other terms are evaluated by the reference
semantics. Work limits are checked before each term, between the calls of Arrow, and between values.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidings.filters import Attributes
from tidings.filters.language import (
    Attribute,
    Call,
    Expression,
    attributes_of,
    evaluate,
    null_paths,
)
from tidings.filters.values import look
from tidings.matching.rank_space.arrow_evaluation import Columnar
from tidings.matching.rank_space.arrow_functions import NotColumnar
from tidings.matching.rank_space.encoder import Encoder, in_micros
from tidings.matching.rank_space.event_lists import batch_of, read_declared
from tidings.matching.rank_space.ranks import Codes
from tidings.model import (
    ABSENT,
    NULL_MARK,
    DataType,
    NotificationError,
    exact_value,
)
from tidings.notifications import cell_cleaner

Path = tuple[str, ...]
T = TypeVar("T")
LEAST = 16  # the overhead of calling Arrow takes as long as evaluating this many values

_DATE_PARTS = {"year": pc.year, "month": pc.month, "day": pc.day}
_CLOCK_PARTS = {"hour": pc.hour, "minute": pc.minute, "second": pc.second}


def as_batch(
    events: Any, attributes: Attributes | None = None, nulls: Collection[Path] = ()
) -> pa.RecordBatch:
    """Convert Arrow data, a DataFrame or a list of mappings to one record batch, with types that
    Arrow fully supports.

    Declared attributes are converted to their types; in a table, only columns of text are
    converted. Nulls in mappings are marked at the paths `nulls`; nulls in a table count as absent
    values.
    """
    if isinstance(events, (list, tuple)):
        if attributes is not None:
            events = read_declared(events, attributes)
        return _usual(batch_of(events, nulls))
    batch = _as_batch(events)
    return batch if attributes is None else conform(batch, attributes)


def _as_batch(events: Any) -> pa.RecordBatch:
    if isinstance(events, pa.RecordBatch):
        return _usual(events)
    if isinstance(events, pa.Table):
        batches = events.combine_chunks().to_batches()
        found = batches[0] if batches else pa.RecordBatch.from_pylist([], schema=events.schema)
        return _usual(found)
    if hasattr(events, "iloc"):
        return _usual(pa.RecordBatch.from_pandas(events, preserve_index=False))
    if hasattr(events, "__arrow_c_stream__"):  # polars, DuckDB, Arrow readers
        return _as_batch(pa.table(events))
    if hasattr(events, "__arrow_c_array__"):
        return _usual(pa.record_batch(events))
    raise NotificationError(
        f"found {type(events).__name__}, expected Arrow data (a RecordBatch, a Table, or anything "
        f"with the Arrow PyCapsule interface), a DataFrame, or a list of mappings"
    )


def _usual(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Convert types that Arrow supports only in part or handles wrongly.

    `take` fails on string views, and dictionary encoding of string views loses nulls. This module
    uses two of Arrow's five layouts for lists. In time zones ahead of UTC, the last instants of
    9999 are beyond Python's range.
    """
    for at, field in enumerate(batch.schema):
        kind = _usual_type(field.type)
        if kind != field.type:
            column = batch.column(at)
            if _is_list_view(field.type):  # because a cast would give wrong offsets
                column = pa.array(column.to_pylist(), kind)
            batch = batch.set_column(at, field.name, column.cast(kind))
    return batch


def _usual_type(kind: Any) -> Any:
    is_ = pa.types
    if is_.is_string_view(kind):
        return pa.large_string()
    if is_.is_timestamp(kind) and kind.tz is not None:
        return pa.timestamp(kind.unit, "UTC")
    if is_.is_large_list(kind):
        return pa.large_list(_usual_type(kind.value_type))
    if is_.is_list(kind) or is_.is_fixed_size_list(kind) or _is_list_view(kind):
        return pa.list_(_usual_type(kind.value_type))
    if is_.is_struct(kind):
        return pa.struct([field.with_type(_usual_type(field.type)) for field in kind])
    if is_.is_dictionary(kind):
        return pa.dictionary(kind.index_type, _usual_type(kind.value_type), kind.ordered)
    return kind


def _is_list_view(kind: Any) -> bool:
    return bool(pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind))


def conform(batch: pa.RecordBatch, attributes: Attributes) -> pa.RecordBatch:
    """Read string columns as their declared types; raise NotificationError if a string can't be
    read.

    Columns of other types are left as they are.
    """
    for at, field in enumerate(batch.schema):
        kind = attributes.type((field.name,))
        if kind in (None, "string", "list", "struct", "map") or not _is_text(field.type):
            continue
        column = batch.column(at)
        if not pa.types.is_dictionary(column.type):
            column = column.dictionary_encode()
        name = field.name
        read = [attributes.read({name: value})[name] for value in column.dictionary.to_pylist()]
        values = _read_array(read, str(kind), attributes.data_type((name,))).take(column.indices)
        batch = batch.set_column(at, name, values)
    return batch


def _read_array(values: list[Any], name: str, kind: DataType | None) -> Any:
    if name == "decimal" and kind is not None:
        exact = [None if value is None else exact_value(value) for value in values]
        return pa.array(exact, pa.decimal256(kind.precision, kind.scale))
    return pa.array(values, _ARROW[name])


_ARROW = {"boolean": pa.bool_(), "integer": pa.int64(), "double": pa.float64(),
          "date": pa.date32(), "timestamp": pa.timestamp("us", "UTC")}  # fmt: skip


def _is_text(kind: Any) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def attribute(batch: pa.RecordBatch, path: Path) -> Any:
    """The column at a path; if there is no such column, a column of nulls. A path through a list is
    read row by row."""
    places = batch.schema.get_all_field_indices(path[0])
    if not places:
        return pa.nulls(batch.num_rows)
    if len(places) > 1:
        raise NotificationError(f"the column '{path[0]}' occurs {len(places)} times, expected once")
    column = batch.column(places[0])
    for name in path[1:]:
        if pa.types.is_list(column.type) or pa.types.is_large_list(column.type):
            return _by_rows(batch, path)
        column = _step(column, name)
        if column is None:
            return pa.nulls(batch.num_rows)
    return column


def _step(column: Any, name: str) -> Any:
    """A field of a struct, or the value of a key in a map; None if the column has neither."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if _has_keys(column.type):
        return pc.map_lookup(column, pa.scalar(name, column.type.key_type), "last")
    if not pa.types.is_struct(column.type) or column.type.get_field_index(name) < 0:
        return None
    found = pc.struct_field(column, name)
    return pc.if_else(column.is_valid(), found, None) if column.null_count else found


def _has_keys(kind: Any) -> bool:
    """Whether this is a type of maps whose keys filters can name."""
    return bool(pa.types.is_map(kind)) and _is_text(kind.key_type)


def _by_rows(batch: pa.RecordBatch, path: Path) -> Any:
    values = [evaluate(Attribute(path), row) for row in rows(batch, [path])]
    return pa.array(values)


def rows(batch: pa.RecordBatch, paths: Iterable[Path], at: Any = None) -> list[dict[str, Any]]:
    """Events as mappings, with only the top-level columns that the paths need. A null cell becomes
    an absent value unless it is marked."""
    names = sorted({path[0] for path in paths} & set(batch.schema.names))
    marked = [name for name in names if NULL_MARK + name in batch.schema.names]
    part = batch.select([*names, *(NULL_MARK + name for name in marked)])
    if at is not None:
        part = part.take(pa.array(at))
    if not names:
        return [{} for _ in range(part.num_rows if at is None else len(at))]
    columns = [in_python(column) for column in part.columns]
    found = [
        {name: value for name, value in zip(names, values, strict=True) if value is not None}
        for values in zip(*columns[: len(names)], strict=True)
    ]
    for name, marks in zip(marked, columns[len(names) :], strict=True):
        for row, is_null in enumerate(marks):
            if is_null:
                found[row][name] = None
    return found


def in_python(column: Any) -> list[Any]:
    """The values of a column as Python objects. In structs, null cells become absent values unless
    they are marked; in lists and maps, nulls remain nulls."""
    if pa.types.is_timestamp(column.type):
        column = in_micros(column)
    found: list[Any]
    if _has_map(column.type):
        with warnings.catch_warnings(action="ignore"):  # if a key repeats, the last value counts
            found = column.to_pylist(maps_as_pydicts="lossy")
    else:
        found = column.to_pylist()
    clean = cell_cleaner(column.type)
    return found if clean is None else list(map(clean, found))


def explicit_nulls(batch: pa.RecordBatch, path: Path) -> Any:
    """A mask that is true in the rows in which the value at a path is null, not absent; None if
    there are no such rows.

    The mask selects the rows that have a mark, and those in which the map has the key with null as
    its value.
    """
    *above, name = path
    at = batch.schema.get_field_index(above[0] if above else NULL_MARK + name)
    if at < 0:
        return None
    column = batch.column(at)
    for step in above[1:]:
        column = _step(column, step)
        if column is None:
            return None
    if above:
        is_map = _has_keys(column.type)
        column = _null_items(column, name) if is_map else _step(column, NULL_MARK + name)
    return None if column is None else np.asarray(column.fill_null(False))


def _null_items(column: Any, name: str) -> Any:
    """The rows in which a map has this key without a value."""
    has_value = pa.MapArray.from_arrays(column.offsets, column.keys, pc.is_valid(column.items))
    found = pc.map_lookup(has_value, pa.scalar(name, column.type.key_type), "last")
    return pc.and_(column.is_valid(), pc.invert(found))


def _has_map(kind: Any) -> bool:
    if pa.types.is_map(kind):
        return True
    return bool(pa.types.is_nested(kind)) and any(
        _has_map(kind.field(at).type) for at in range(kind.num_fields)
    )


def value_column(node: Expression, batch: pa.RecordBatch) -> Any:
    """The values of a term as an Arrow column."""
    if isinstance(node, Attribute):
        return attribute(batch, node.path)
    return pa.array([evaluate(node, row) for row in rows(batch, attributes_of(node))])


def is_absent(node: Expression, names: Container[str], encoder: Encoder) -> bool:
    """Whether a term is an attribute that a batch with columns of these names does not have. If a
    small batch lacks most of the columns that filters test, this check saves most of the time."""
    return (
        isinstance(node, Attribute)
        and node.path[0] not in names
        and not encoder.ranks.tells_null  # another column may contain marks for nulls
    )


def codes_of(node: Expression, batch: pa.RecordBatch, encoder: Encoder) -> Codes:
    """The codes of a term on every event of a batch."""
    if isinstance(node, Attribute):
        codes = encoder.encode(attribute(batch, node.path))
        marked = explicit_nulls(batch, node.path) if encoder.ranks.tells_null else None
        if marked is not None:
            codes[marked] = encoder.ranks.null
        return codes
    look()
    vectorised = _by_arrow(node, batch)
    if vectorised is not None:
        return encoder.encode(vectorised)
    paths = sorted(attributes_of(node))
    if paths and not are_marked(node, batch):
        found = {path: attribute(batch, path) for path in paths}
        if len(paths) == 1 and not pa.types.is_nested(found[paths[0]].type):
            return _by_distinct(node, paths[0], found[paths[0]], encoder)
        computed = _compute(node, found, batch.num_rows)
        if computed is not None:
            return encoder.encode(computed)
    code = encoder.ranks.code
    each = (code(evaluate(node, row)) for row in _looking(rows(batch, paths)))
    return np.fromiter(each, np.uint32, batch.num_rows)


def _compute(node: Expression, found: Mapping[Path, Any], count: int) -> Any:
    """The values of a term, computed by Arrow; None if Arrow can't compute exactly the same, or if
    there are too few values for it to be worth it."""
    if count < LEAST:
        return None
    try:
        computed = Columnar(found, count).condition(node)
    except NotColumnar:
        return None
    look()
    return computed


def _looking(events: Iterable[T]) -> Iterator[T]:
    """The same items. Raises WorkError between them if matching takes too long."""
    for one in events:
        look()
        yield one


def _by_distinct(node: Expression, path: Path, column: Any, encoder: Encoder) -> Codes:
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode(null_encoding="encode")
    code, count = encoder.ranks.code, len(column.dictionary)
    computed = _compute(node, {path: column.dictionary}, count)
    if computed is None:
        known = _looking(in_python(column.dictionary))
        values = [code(evaluate(node, nest_value(path, value))) for value in known]
        of_known = np.array(values, np.uint32)
    else:
        of_known = encoder.encode(computed)
    of_null = np.uint32(code(evaluate(node, nest_value(path, None))))
    indices = column.indices.cast(pa.int64()).fill_null(count)
    codes: Codes = np.append(of_known, of_null)[np.asarray(indices)]
    return codes


def are_marked(node: Expression, batch: pa.RecordBatch) -> bool:
    """Does an expression distinguish null from absent in this batch? If so, it must be evaluated
    event by event."""
    paths = null_paths(node)
    return bool(paths) and any(
        name.startswith(NULL_MARK) or (_has_map(kind) and any(path[0] == name for path in paths))
        for name, kind in _all_fields(batch.schema)
    )


def _all_fields(fields: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    for field in fields:
        yield field.name, field.type
        kind = field.type
        while pa.types.is_list(kind) or pa.types.is_large_list(kind):
            kind = kind.value_type
        if pa.types.is_struct(kind):
            yield from _all_fields(kind)


def nest_value(path: Path, cell: Any) -> dict[str, Any]:
    """An event in which only this path of a column has a value."""
    event = {path[-1]: ABSENT if cell is None else cell}
    for step in reversed(path[:-1]):
        event = {step: event}
    return event


def _by_arrow(node: Expression, batch: pa.RecordBatch) -> Any:
    """The column of a term for which Arrow's result is exactly what the language defines; None for
    other terms."""
    if not (isinstance(node, Call) and len(node.args) == 1 and isinstance(node.args[0], Attribute)):
        return None
    column = attribute(batch, node.args[0].path)
    if node.name in _DATE_PARTS and pa.types.is_date(column.type):
        return _DATE_PARTS[node.name](column)
    if pa.types.is_timestamp(column.type) and node.name in (*_DATE_PARTS, *_CLOCK_PARTS):
        # the parts of a timestamp are those of its time in UTC
        in_utc = column.cast(pa.timestamp(column.type.unit))
        return (_DATE_PARTS | _CLOCK_PARTS)[node.name](in_utc)
    if node.name == "length" and pa.types.is_string(column.type):
        return pc.utf8_length(column)
    return None
