"""Encode the elements of list columns as codes, and record the families of the elements."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidings.filters.values import key, sets
from tidings.matching.jit.kernel_compiler import kernel
from tidings.matching.rank_space.encoder import Encoder
from tidings.matching.rank_space.ranks import Codes
from tidings.model import normalise

NO_LIST = 1 << 7

_FAMILIES = (
    (pa.types.is_boolean, sets.BOOLEAN),
    (pa.types.is_integer, sets.NUMBER),
    (pa.types.is_decimal, sets.NUMBER),
    (pa.types.is_string, sets.STRING),
    (pa.types.is_large_string, sets.STRING),
    (pa.types.is_temporal, sets.TIME),
)


class ListCodes(msgspec.Struct, frozen=True):
    """For each event, the sorted distinct codes of its elements, and their families."""

    starts: npt.NDArray[np.int64]  # [n + 1]
    codes: Codes
    state: npt.NDArray[np.uint8]  # [n]: one bit for each family of the elements, or NO_LIST


@kernel
def _sort_rows(starts, codes, out_starts, out):  # type: ignore[no-untyped-def]
    """Sort each row (rows are short) and drop repeated codes; return how many codes remain.

    `starts` and `out_starts` are int64 [n + 1]; `codes` and `out` are uint32 and have at least
    starts[n] elements.
    """
    kept = 0
    for row in range(starts.shape[0] - 1):
        out_starts[row] = kept
        begin = kept
        for i in range(starts[row], starts[row + 1]):
            code = codes[i]
            at = kept
            while at > begin and out[at - 1] > code:
                at -= 1
            if at > begin and out[at - 1] == code:
                continue
            for j in range(kept, at, -1):
                out[j] = out[j - 1]
            out[at] = code
            kept += 1
    out_starts[starts.shape[0] - 1] = kept
    return kept


@kernel
def _union_of_rows(starts, bits, out):  # type: ignore[no-untyped-def]
    """Combine the bits of each row.

    starts int64 [n + 1]; bits uint8 [starts[n]]; out uint8 [n], filled with 0.
    """
    for row in range(starts.shape[0] - 1):
        for i in range(starts[row], starts[row + 1]):
            out[row] |= bits[i]


def encode_lists(column: Any, encoder: Encoder) -> ListCodes:
    """The codes of an Arrow column of lists. If the column has another type, no event has a
    list."""
    count = len(column)
    if not (pa.types.is_list(column.type) or pa.types.is_large_list(column.type)):
        return ListCodes(
            np.zeros(count + 1, np.int64),
            np.zeros(1, np.uint32),
            np.full(count, NO_LIST, np.uint8),
        )
    flat = column.flatten()  # skips null lists
    lengths = np.asarray(column.value_lengths().fill_null(0)).astype(np.int64)
    starts = np.zeros(count + 1, np.int64)
    np.cumsum(lengths, out=starts[1:])
    state = np.zeros(count, np.uint8)
    _union_of_rows(starts, _family_bits(flat), state)
    if column.null_count:
        state[np.asarray(column.is_null())] = NO_LIST
    return _pack(starts, encoder.encode(flat), state)


def encode_list(value: Any, encoder: Encoder) -> ListCodes:
    """The codes of a single value."""
    if not isinstance(value, list):
        return ListCodes(
            np.zeros(2, np.int64), np.zeros(1, np.uint32), np.full(1, NO_LIST, np.uint8)
        )
    items = [normalise(item) for item in value]
    code = encoder.ranks.code
    codes = sorted({code(item) for item in items})
    state = 0
    for item in items:
        state |= 1 << key(item)[0]
    return ListCodes(
        np.array([0, len(codes)], np.int64),
        np.array(codes or [0], np.uint32),
        np.array([state], np.uint8),
    )


def _pack(starts: npt.NDArray[np.int64], codes: Codes, state: npt.NDArray[np.uint8]) -> ListCodes:
    out_starts = np.empty_like(starts)
    out = np.empty(max(1, len(codes)), np.uint32)
    kept = _sort_rows(starts, codes, out_starts, out)
    return ListCodes(out_starts, out[: max(1, kept)], state)


def _family_bits(flat: Any) -> npt.NDArray[np.uint8]:
    """For each element, the bit of its family; null is a family too."""
    kind = flat.type
    family = next((family for test, family in _FAMILIES if test(kind)), None)
    if family is None and not pa.types.is_floating(kind):
        places = (key(normalise(value))[0] for value in flat.to_pylist())
        return np.fromiter((1 << place for place in places), np.uint8, len(flat))
    if family is None:
        nan = np.asarray(flat.fill_null(0.0).cast(pa.float64()))
        bits = np.where(np.isnan(nan), 1 << sets.NAN, 1 << sets.NUMBER).astype(np.uint8)
    else:
        bits = np.full(len(flat), 1 << family, np.uint8)
    if flat.null_count:
        bits[np.asarray(flat.is_null())] = 1 << sets.NO_VALUE
    return bits
