"""Random notifications as what a batch can be: Arrow batches and tables in many types, DataFrames,
and JSON text."""

from __future__ import annotations

import datetime as dt
import json
import math
import random
from typing import Any

import pyarrow as pa
from tests.filters.strategies import Schema


def arrow_type(kind: str) -> pa.DataType:
    return {
        "boolean": pa.bool_(), "integer": pa.int64(), "small": pa.int64(), "double": pa.float64(),
        "string": pa.string(), "date": pa.date32(), "timestamp": pa.timestamp("us", "UTC"),
        "strings": pa.list_(pa.string()), "integers": pa.list_(pa.int64()),
        "doubles": pa.list_(pa.float64()),
    }[kind]  # fmt: skip


def arrow_schema(of: Schema) -> pa.Schema:
    """The columns as an Arrow schema, nested ones as structs."""
    tree: dict[str, Any] = {}
    for path, kind in of.columns:
        level = tree
        for step in path[:-1]:
            level = level.setdefault(step, {})
        level[path[-1]] = arrow_type(kind)

    def struct(level: dict[str, Any]) -> list[pa.Field]:
        return [
            pa.field(name, pa.struct(struct(below)) if isinstance(below, dict) else below)
            for name, below in level.items()
        ]

    return pa.schema(struct(tree))


# Types that hold the same values, by the type that `arrow_type` gives.
_OTHERS: dict[pa.DataType, tuple[pa.DataType, ...]] = {
    pa.string(): (
        pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string()),
        pa.dictionary(pa.int8(), pa.large_string()),
    ),
    pa.timestamp("us", "UTC"): (pa.timestamp("us"), pa.timestamp("us", "+02:00")),
    pa.list_(pa.string()): (
        pa.large_list(pa.string()), pa.list_(pa.large_string()), pa.list_(pa.string_view()),
    ),
    pa.list_(pa.int64()): (pa.large_list(pa.int64()), pa.list_(pa.int8())),
    pa.list_(pa.float64()): (pa.large_list(pa.float64()),),
    pa.date32(): (pa.date64(),),
}  # fmt: skip


def disguised(rng: random.Random, batch: pa.RecordBatch) -> pa.RecordBatch:
    """The same notifications in other types, from the middle of a longer batch, and without the
    columns that hold nothing."""
    count = len(batch)
    if count:
        batch = batch.take(pa.array([0, *range(count), 0]))
    columns = {}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        column = column.cast(_other(rng, column.type))
        if column.null_count < len(column) or rng.random() < 0.5:
            columns[name] = column
    return pa.RecordBatch.from_pydict(columns).slice(1 if count else 0, count)


def _other(rng: random.Random, kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_other(rng, field.type)) for field in kind])
    others = _OTHERS.get(kind, ())
    return rng.choice(others) if others and rng.random() < 0.4 else kind


def chunked(rng: random.Random, batch: pa.RecordBatch) -> pa.Table:
    """The same notifications as a table of several chunks."""
    places = sorted(rng.choices(range(len(batch) + 1), k=3))
    ends = [*places, len(batch)]
    starts = [0, *places]
    return pa.Table.from_batches(
        [batch.slice(a, b - a) for a, b in zip(starts, ends, strict=True)], batch.schema
    )


def arrow_frame(batch: pa.RecordBatch) -> Any:
    """A DataFrame of Arrow's types, which holds whatever Arrow holds."""
    import pandas as pd

    return pa.Table.from_batches([batch]).to_pandas(types_mapper=pd.ArrowDtype)


def object_frame(batch: pa.RecordBatch) -> Any:
    """A DataFrame of NumPy's types and Python objects; only for `is_faithful` notifications."""
    return batch.to_pandas(
        integer_object_nulls=True, date_as_object=True, timestamp_as_object=True,
        types_mapper=None,
    )  # fmt: skip


def is_faithful(event: Any) -> bool:
    """Whether plain pandas can hold it: to it NaN is null, and a null in a list of numbers NaN."""
    if isinstance(event, dict):
        return all(is_faithful(value) for value in event.values())
    if isinstance(event, list):
        return None not in event and all(is_faithful(value) for value in event)
    return not (isinstance(event, float) and math.isnan(event))


def json_text(event: Any, *, times: bool) -> str | None:
    """A notification as JSON, or None where JSON has no such value. `times`: text may be one."""

    def written(value: Any) -> Any:
        if isinstance(value, (dt.date, dt.datetime)) and times:
            return value.isoformat()
        raise ValueError

    try:
        return json.dumps(event, default=written, allow_nan=False)
    except ValueError:
        return None


def without_times(event: dict[str, Any]) -> dict[str, Any]:
    """A notification that JSON can hold: without times, NaN and infinities."""

    def kept(value: Any) -> bool:
        return not isinstance(value, dt.date) and not _endless(value)

    return {
        name: without_times(value)
        if isinstance(value, dict)
        else [one for one in value if kept(one)]
        if isinstance(value, list)
        else value
        for name, value in event.items()
        if kept(value)
    }


def _endless(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)
