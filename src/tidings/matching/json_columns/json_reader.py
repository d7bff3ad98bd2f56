"""Reads flat JSON objects into a record batch, for given names and kinds of columns.

Cost: about 2.5 ns per byte, plus the arrays of the columns; no Python code runs for single values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidings.matching.json_columns import json_line_kernels as kernels

KINDS: dict[type, tuple[int, pa.DataType]] = {
    str: (kernels.TEXT, pa.string()),
    int: (kernels.INTEGER, pa.int64()),
    float: (kernels.DOUBLE, pa.float64()),
    bool: (kernels.TRUTH, pa.bool_()),
    type(None): (kernels.NULL, pa.null()),
}
"""The kinds of columns, by the type of a value in Python, and their types in Arrow."""

Array = npt.NDArray[np.uint8]


class JsonRows(NamedTuple):
    """A row for each object. In the record batch, absent and null values are both null."""

    batch: pa.RecordBatch
    odd: list[int]
    """The positions of odd objects, whose rows are empty."""
    named: npt.NDArray[np.bool_]
    """For each column and row, whether the object has the attribute, even if it is null."""
    mixed: frozenset[str]
    """The columns of doubles with a number that the JSON writes as a whole number."""


class JsonReader:
    """Reads objects into columns."""

    def __init__(self, columns: Mapping[str, type]) -> None:
        self._names = [*columns]
        encoded = [name.encode() for name in columns]
        self._name_data = np.frombuffer(b"".join(encoded), np.uint8)
        self._name_places = np.array([0, *accumulate(map(len, encoded))], np.int64)
        self._kinds = np.array([KINDS[kind][0] for kind in columns.values()], np.uint8)
        self._types = [KINDS[kind][1] for kind in columns.values()]

    def read(self, contents: Sequence[bytes]) -> JsonRows | None:
        """The columns of objects; None if a string is not UTF-8."""
        joined = b"".join(contents)
        rows, columns = len(contents), len(self._names)
        data = np.frombuffer(joined, np.uint8)
        places = np.zeros(rows + 1, np.int64)
        np.cumsum(np.fromiter(map(len, contents), np.int64, rows), out=places[1:])
        numbers = np.empty((columns, rows), np.int64)
        doubles = np.empty((columns, rows), np.float64)
        texts = np.empty((columns, rows, 2), np.int64)
        valid = np.zeros((columns, rows), np.uint8)
        odd, wide = np.empty(rows, np.uint8), np.zeros(columns, np.uint8)
        many = kernels.read_objects(
            data, places, self._name_data, self._name_places, self._kinds, kernels.TENS,
            numbers, doubles, texts, valid, odd, wide,
        )  # fmt: skip
        named = valid != kernels.ABSENT
        valid &= kernels.HERE
        found = []
        for at, kind in enumerate(self._kinds.tolist()):
            if kind == kernels.TEXT:
                array = _texts(data, texts[at], valid[at])
                if wide[at] and not _is_valid(array):
                    return None
            elif kind == kernels.NULL:
                array = pa.nulls(rows)
            elif kind == kernels.TRUTH:
                truths = np.packbits(np.where(valid[at], numbers[at], 0) > 0, bitorder="little")
                array = _array(self._types[at], valid[at], pa.py_buffer(truths))
            else:
                values = doubles[at] if kind == kernels.DOUBLE else numbers[at]
                array = _array(self._types[at], valid[at], pa.py_buffer(values))
            found.append(array)
        batch = pa.RecordBatch.from_arrays(found, self._names)
        is_mixed = (self._kinds == kernels.DOUBLE) & (wide > 0)
        mixed = frozenset(self._names[at] for at in np.flatnonzero(is_mixed).tolist())
        return JsonRows(batch, np.flatnonzero(odd).tolist() if many else [], named, mixed)


def _texts(data: Array, texts: npt.NDArray[np.int64], valid: Array) -> pa.Array:
    offsets = np.empty(len(valid) + 1, np.int32)
    kernels.measure_texts(texts, valid, offsets)
    copied = np.empty(int(offsets[-1]), np.uint8)
    kernels.copy_texts(data, texts, offsets, copied)
    return _array(pa.string(), valid, pa.py_buffer(offsets), pa.py_buffer(copied))


def _array(kind: pa.DataType, valid: Array, *buffers: pa.Buffer) -> pa.Array:
    count = int(valid.sum())
    bits = None if count == len(valid) else pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(kind, len(valid), [bits, *buffers], len(valid) - count)


def _is_valid(array: pa.Array) -> bool:
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True
