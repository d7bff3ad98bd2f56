"""The result of decoding: the good rows in columns, and a reason for each bad row.

    input   0 1 2 3 4 5        good     four rows, typed
            . . x . x .        rows     0 1 3 5
                               bad_rows 2 4
                               reasons  "column 'delay': found \"late\", expected ..." ...

Each position of the input occurs in exactly one of the two arrays `rows` and `bad_rows`, which are
both in ascending order.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

Positions = npt.NDArray[np.int64]


class Decoded(msgspec.Struct, frozen=True, eq=False):
    """The good rows as a batch with the declared schema, and the reasons for the bad rows."""

    good: pa.RecordBatch
    rows: Positions  # the index that each good row had in the input
    bad_rows: Positions
    reasons: list[str]  # for each bad row, one sentence
    # the undeclared fields of each good row, as JSON texts; None if there are none, or if they are
    # dropped
    extra: Any = None
    extra_rows: int = 0  # how many good rows have undeclared fields
    extra_fields: int = 0


def assemble(arrays: list[Any], schema: pa.Schema, length: int, bad: dict[int, str]) -> Decoded:
    """Combine the columns of the good rows; `length` is the number of input rows."""
    positions = sorted(bad)
    bad_rows = np.array(positions, np.int64)
    rows = np.delete(np.arange(length, dtype=np.int64), bad_rows)
    if arrays:
        good = pa.RecordBatch.from_arrays(arrays, schema=schema)
    else:  # without columns, Arrow can't infer the number of rows
        good = pa.RecordBatch.from_struct_array(pa.array([{}] * len(rows), pa.struct([])))
    return Decoded(good, rows, bad_rows, [bad[at] for at in positions])
