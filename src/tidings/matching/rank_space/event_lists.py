"""A list of mappings as one record batch.

Each attribute becomes a column. A column has one type, so an attribute must have the same type in
all events of the list. Only integers and doubles may be mixed, if doubles represent the integers
exactly. None means null, and a missing name means absent. Where filters distinguish null from
absent, a mark stands next to the null (see model.NULL_MARK):

    events   {"a": None, "s": {"x": None}}     {}         nulls   a, s.x
    batch    a: null, null    "\\0null a": true, null    s: {x: null, "\\0null x": true}, null

Cost: one Python step per value, so matching Arrow data is several times as fast.
"""

from __future__ import annotations

import datetime
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from tidings.filters import Attributes
from tidings.model import NULL_MARK, DataType, NotificationError, Path, exact_value

NUMBERS = {"int", "float"}


def batch_of(events: Sequence[Mapping[str, Any]], nulls: Collection[Path] = ()) -> pa.RecordBatch:
    """Convert events to a record batch that marks the nulls at the paths `nulls`. Raise
    NotificationError if the events do not fit into columns."""
    names: dict[str, None] = {}
    marker = _Marker(nulls) if nulls else None
    for at, event in enumerate(events):
        if not isinstance(event, Mapping):
            raise NotificationError(
                f"event {at}: found {type(event).__name__}, expected a mapping of attributes"
            )
        names.update(dict.fromkeys(event))
    if marker is not None:
        events = [marker.mark(event) for event in events]
        names = dict.fromkeys(name for event in events for name in event)
    if not names:  # a batch without columns would have no rows
        return pa.RecordBatch.from_arrays([pa.nulls(len(events))], ["subject"])
    columns = [_column(name, [event.get(name) for event in events]) for name in names]
    return pa.RecordBatch.from_arrays(columns, list(names))


def read_declared(events: Sequence[Any], attributes: Attributes) -> list[Any]:
    """The events as `Attributes.read` returns them, except for decimals: `read` may turn a decimal
    into an integer or a double, but a column has one type, so here decimals stay decimals."""
    found: list[Any] = []
    exact = {name: kind for name, kind in attributes.tree.items() if _has_decimals(kind)}
    for event in events:
        if isinstance(event, Mapping):  # `batch_of` refuses events that are not mappings
            event = attributes.read(event)
            for name in event.keys() & exact.keys():
                event[name] = _as_decimals(event[name], exact[name])
        found.append(event)
    return found


def _has_decimals(kind: DataType | None) -> bool:
    return kind is not None and (
        kind.kind == "decimal"
        or _has_decimals(kind.element)
        or any(_has_decimals(field.type) for field in kind.fields)
    )


def _as_decimals(value: Any, kind: DataType | None) -> Any:
    if value is None or kind is None or not _has_decimals(kind):
        return value
    if kind.kind == "decimal":
        return exact_value(value)
    if kind.kind == "list":
        return [_as_decimals(one, kind.element) for one in value]
    return {name: _as_decimals(one, kind.field(name)) for name, one in value.items()}


class _Marker:
    """The paths below one value at which nulls are marked, grouped by their first steps."""

    def __init__(self, paths: Collection[Path]) -> None:
        self.is_marked = () in paths
        below: dict[str, list[Path]] = {}
        for path in paths:
            if path:
                below.setdefault(path[0], []).append(path[1:])
        self.below = {name: _Marker(some) for name, some in below.items()}

    def mark(self, value: Any) -> Any:
        """A copy of the value in which nulls are marked. A path through a list leads into each of
        its elements."""
        if not self.below:
            return value
        if isinstance(value, (list, tuple)):
            return [self.mark(one) for one in value]
        if not isinstance(value, Mapping):
            return value
        out = dict(value)
        for name, inner in self.below.items():
            if name not in value:
                continue
            if value[name] is not None:
                out[name] = inner.mark(value[name])
            elif inner.is_marked:
                out[NULL_MARK + name] = True
        return out


def _column(name: str, values: list[Any]) -> Any:
    if not isinstance(name, str):
        raise NotificationError(f"found the attribute name {name!r}, expected a string")
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
    """The types of the values at a path and at all paths below it."""
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
