"""Matches rows with undeclared fields against filters that may test these fields.

    good    id: 1, 2, 3    user: {city: A}, null, null
    extra   {"zone": "EU", "user": {"age": 5}}    null    {"zone": null}
    batch   id: 1, 2, 3    user: {city: A, age: 5}, null, null    zone: EU, null, null

If all values of a tested field have one type, they become a column, and the batch is matched as
usual. If a field has several types (a number in one row and a string in the next), the rows are
matched one by one. Nulls are marked as in declared columns; see notifications/null_marks.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidings.matching import batch_of, events_of
from tidings.model import NULL_MARK, Event, NotificationError
from tidings.snapshots import View

Array = npt.NDArray[Any]
Fields = list[dict[str, Any]]


def match_open(view: View, good: pa.RecordBatch, extra: Any) -> tuple[Array, Array]:
    """The result that `View.match_places` gives for the rows, including the fields in `extra` (JSON
    or None)."""
    tested = {path[0] for path in view.matcher.list_tested()}
    if extra is None or not tested:
        return view.match_places(good)
    fields: Fields = [
        {} if text is None else msgspec.json.decode(text) for text in extra.to_pylist()
    ]
    names = tested & {name for row in fields for name in row}
    if not names:
        return view.match_places(good)
    try:
        more = batch_of(_join_all(good, fields, names), view.matcher.null_paths())
    except NotificationError:  # a field has values of different types
        return match_rows(view, _join_all(good, fields, tested))
    replaced = {*names, *(NULL_MARK + name for name in names)}
    kept = good.select([name for name in good.schema.names if name not in replaced])
    joined = dict(zip(kept.schema.names, kept.columns, strict=True))
    joined |= dict(zip(more.schema.names, more.columns, strict=True))
    return view.match_places(pa.RecordBatch.from_arrays([*joined.values()], names=[*joined]))


def list_events(good: pa.RecordBatch, extra: Any) -> Fields:
    """All fields of each row; `extra` has the undeclared ones, as JSON or None."""
    texts = [None] * good.num_rows if extra is None else extra.to_pylist()
    fields: Fields = [{} if text is None else msgspec.json.decode(text) for text in texts]
    names = {name for name in good.schema.names if not name.startswith(NULL_MARK)}
    return _join_all(good, fields, names.union(*fields))


def match_rows(view: View, events: Sequence[Event]) -> tuple[Array, Array]:
    """The result that `View.match_places` gives, for rows that are matched one by one."""
    starts = np.zeros(len(events) + 1, np.int64)
    places: list[int] = []
    for at, event in enumerate(events):
        found: list[Any] = view.matcher.match(event)
        places += [place for place in found if place < len(view.numbers)]
        starts[at + 1] = len(places)
    return starts, np.array(places, np.int64)


def _join_all(good: pa.RecordBatch, fields: Fields, names: Iterable[str]) -> Fields:
    """For each row, the declared and undeclared fields of the top-level attributes `names`."""
    wanted = [(name,) for name in names]
    declared = events_of(good, wanted)
    if not any(name in good.schema.names for (name,) in wanted):
        declared = [{} for _ in fields]
    return [
        _join(row, {name: more[name] for (name,) in wanted if name in more})
        for row, more in zip(declared, fields, strict=True)
    ]


def _join(declared: Any, more: Any) -> Any:
    """Join the declared fields of a value with its undeclared fields."""
    if isinstance(declared, Mapping) and isinstance(more, Mapping):
        out = dict(declared)
        for name, value in more.items():
            out[name] = _join(out[name], value) if name in out else value
        return out
    if isinstance(declared, list) and isinstance(more, list):
        return [_join(one, other) for one, other in zip(declared, more, strict=True)]
    return declared  # this list element has no undeclared fields
