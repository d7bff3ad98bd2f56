"""Matches rows with undeclared fields against filters that may test these fields.

    good    id: 1, 2, 3                 extra    {"zone": "EU"}   null   {"zone": "US", "n": 5}
    batch   id: 1, 2, 3     zone: EU, null, US

If the values of each tested field have one type, they become a column and the batch is matched as
usual. Otherwise (if a field is a number in one row and a text in the next, or a list, or an
explicit null) the rows are matched one by one, which takes about ten times as long.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidings.model import INT_MAX, INT_MIN
from tidings.notifications import join_fields
from tidings.snapshots import View

Array = npt.NDArray[Any]
_KINDS = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}


def match_open(view: View, good: pa.RecordBatch, extra: Any) -> tuple[Array, Array]:
    """What `View.matched` gives for the rows, with the fields in `extra` (JSON texts or None)."""
    tested = {path[0] for path in view.matcher.tested()}
    if extra is None or not tested:
        return view.matched(good)
    fields = [{} if text is None else msgspec.json.decode(text) for text in extra.to_pylist()]
    names = sorted(tested & {name for row in fields for name in row})
    if not names:
        return view.matched(good)
    columns = {name: _as_column(fields, name) for name in names}
    if set(names) & set(good.schema.names) or any(one is None for one in columns.values()):
        return _match_rows(view, good, fields, tested)
    arrays = [*good.columns, *columns.values()]
    return view.matched(pa.RecordBatch.from_arrays(arrays, names=[*good.schema.names, *columns]))


def _as_column(rows: list[dict[str, Any]], name: str) -> Any:
    """The values of a field as a column; None unless all are scalars of one type."""
    kinds = {type(row[name]) for row in rows if name in row}
    kind = _KINDS.get(next(iter(kinds))) if len(kinds) == 1 else None
    if kind is None:
        return None
    values = [row.get(name) for row in rows]
    if kind == pa.int64() and not all(v is None or INT_MIN <= v <= INT_MAX for v in values):
        return None
    return pa.array(values, kind)


def _match_rows(
    view: View, good: pa.RecordBatch, fields: list[dict[str, Any]], tested: set[str]
) -> tuple[Array, Array]:
    names = [name for name in good.schema.names if name in tested]
    rows: list[dict[str, Any]] = [{} for _ in fields]
    if names:
        rows = good.select(names).to_pylist(maps_as_pydicts="strict")
    starts = np.zeros(len(rows) + 1, np.int64)
    places: list[int] = []
    for at, (row, more) in enumerate(zip(rows, fields, strict=True)):
        found: list[Any] = view.matcher.match(join_fields(row, more))
        places += [place for place in found if place < len(view.numbers)]
        starts[at + 1] = len(places)
    return starts, np.array(places, np.int64)
