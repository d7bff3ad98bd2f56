"""A list of mappings as one record batch.

Each attribute becomes a column. A column has one type, so the values of an attribute must be of one
type in all events of the list; integers and doubles may be mixed if doubles can hold the integers.
Cost: one Python step per value, so Arrow data is several times as fast.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from tidings.model import NotificationError

NUMBERS = {"int", "float"}


def batch_of(events: Sequence[Mapping[str, Any]]) -> pa.RecordBatch:
    """The events as a record batch; NotificationError if they do not fit into columns."""
    names: dict[str, None] = {}
    for at, event in enumerate(events):
        if not isinstance(event, Mapping):
            raise NotificationError(
                f"event {at}: found {type(event).__name__}, expected a mapping of attributes"
            )
        names.update(dict.fromkeys(event))
    if not names:  # a batch without columns would have no rows
        return pa.RecordBatch.from_arrays([pa.nulls(len(events))], ["subject"])
    columns = [_column(name, [event.get(name) for event in events]) for name in names]
    return pa.RecordBatch.from_arrays(columns, list(names))


def _column(name: str, values: list[Any]) -> Any:
    if not isinstance(name, str):
        raise NotificationError(f"found the attribute {name!r}, expected names to be strings")
    for path, kinds in _kinds(name, values):
        if len(kinds) > 1 and kinds != NUMBERS:
            raise NotificationError(
                f"the attribute '{path}' has values of the types {', '.join(sorted(kinds))}, "
                f"expected one type; call match for each of these events instead"
            )
    try:
        return pa.array(values)
    except (pa.ArrowException, OverflowError, UnicodeError) as problem:
        raise NotificationError(
            f"the values of the attribute '{name}' do not fit into one column ({problem}); call "
            f"match for each of these events instead"
        ) from None


def _kinds(path: str, values: Sequence[Any]) -> Iterator[tuple[str, set[str]]]:
    """The types at a path and at all paths below it."""
    kinds = {_kind(value) for value in values if value is not None}
    yield path, kinds
    if kinds == {"list"}:
        yield from _kinds(path, [one for value in values if value is not None for one in value])
    elif kinds == {"object"}:
        found = [value for value in values if value is not None]
        for name in dict.fromkeys(name for value in found for name in value):
            yield from _kinds(f"{path}.{name}", [value.get(name) for value in found])


def _kind(value: Any) -> str:
    if isinstance(value, Mapping):
        return "object"
    if isinstance(value, (list, tuple)):
        return "list"
    if isinstance(value, datetime.datetime):
        return "timestamp without a zone" if value.tzinfo is None else "timestamp"
    return type(value).__name__
