"""Encode Arrow columns as codes of one term: each common type has a fast method, and Python handles
all others."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tidings.matching.rank_space import rank_kernels
from tidings.matching.rank_space.ranks import Codes, Ranks
from tidings.model import normalise

_TABLE_SPAN = 1 << 20  # if thresholds span at most this range, they are looked up in a table


class Encoder:
    """Encodes columns into the rank space of one term. The tables of the encoder are built when
    they are first used."""

    def __init__(self, ranks: Ranks) -> None:
        self.ranks = ranks

    def encode(self, column: Any) -> Codes:
        """Codes of an Arrow array of any type; a null cell counts as absent."""
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        kind = column.type
        if pa.types.is_dictionary(kind):
            return self._dictionary(column)
        if pa.types.is_null(kind):
            return np.full(len(column), self.ranks.absent, dtype=np.uint32)
        codes = self._encode_typed(column, kind)
        if codes is None:
            return self._one_by_one(column)
        if column.null_count:
            codes[np.asarray(column.is_null())] = self.ranks.absent
        return codes

    def _encode_typed(self, column: Any, kind: Any) -> Codes | None:
        is_ = pa.types
        if is_.is_string(kind) or is_.is_large_string(kind):
            return self._strings(column)
        if is_.is_string_view(kind):
            return self._strings(column.cast(pa.large_string()))
        if is_.is_integer(kind) and not is_.is_uint64(kind):
            return self._integers(_values(column.cast(pa.int64()), np.int64))
        if is_.is_float64(kind) or is_.is_float32(kind):
            return self._doubles(_values(column.cast(pa.float64()), np.float64))
        if is_.is_decimal(kind):
            return self._decimals(column, kind)
        if is_.is_boolean(kind):
            flags = np.asarray(column.fill_null(False))
            no, yes = self.ranks.booleans
            return np.where(flags, np.uint32(yes), np.uint32(no)).astype(np.uint32)
        if is_.is_timestamp(kind):
            return self._times(_values(in_micros(column).cast(pa.int64()), np.int64))
        if is_.is_date(kind):
            days = _values(column.cast(pa.date32()).cast(pa.int32()), np.int32)
            return self._times(days.astype(np.int64) * 86_400_000_000)
        if is_.is_nested(kind):
            return np.full(len(column), self.ranks.other, dtype=np.uint32)
        return None

    def _dictionary(self, column: Any) -> Codes:
        known = self.encode(column.dictionary)
        indices = _values(column.indices.fill_null(0).cast(pa.int64()), np.int64)
        if len(known) == 0:
            return np.full(len(column), self.ranks.absent, dtype=np.uint32)
        codes: Codes = known[indices]
        if column.null_count:
            codes[np.asarray(column.indices.is_null())] = self.ranks.absent
        return codes

    def _one_by_one(self, column: Any) -> Codes:
        code, absent = self.ranks.code, self.ranks.absent
        return np.fromiter(
            (absent if value is None else code(normalise(value)) for value in column.to_pylist()),
            np.uint32,
            len(column),
        )

    # -- numbers and times ---------------------------------------------------------------------

    @cached_property
    def integer_table(self) -> tuple[int, Codes] | None:
        thresholds = self.ranks.integers
        if len(thresholds) == 0 or int(thresholds[-1]) - int(thresholds[0]) > _TABLE_SPAN:
            return None
        if abs(int(thresholds[0])) > 2**61:  # otherwise the sums below could overflow
            return None
        lowest = int(thresholds[0]) - 1
        points = np.arange(lowest, int(thresholds[-1]) + 1)
        found = np.searchsorted(thresholds, points, side="right") + self.ranks.number_base
        return lowest, found.astype(np.uint32)

    def _integers(self, values: npt.NDArray[np.int64]) -> Codes:
        out = np.empty(len(values), dtype=np.uint32)
        if self.integer_table is not None:
            rank_kernels.rank_by_table(values, *self.integer_table, out)
        else:
            rank_kernels.rank_integers(values, self.ranks.integers, self.ranks.number_base, out)
        return out

    def _doubles(self, values: npt.NDArray[np.float64]) -> Codes:
        found = np.searchsorted(self.ranks.doubles, values, side="right")
        return (found + self.ranks.number_base).astype(np.uint32)

    def _decimals(self, column: Any, kind: Any) -> Codes | None:
        """Decimals as integers, in units of their last digit; None if 64 bits are not enough for
        some of them."""
        if kind.bit_width < 128:
            column = column.cast(pa.decimal128(kind.precision, kind.scale))
        words = max(kind.bit_width, 128) // 64
        whole = _values(column, np.dtype((np.int64, (words,))))
        low = whole[:, 0]
        if kind.precision > 18:
            if column.null_count:
                whole = np.where(np.asarray(column.is_null())[:, None], 0, whole)
                low = whole[:, 0]
            if (whole[:, 1:] != (low >> 63)[:, None]).any():
                return None
        out = np.empty(len(low), dtype=np.uint32)
        rank_kernels.rank_integers(
            np.ascontiguousarray(low),
            self.ranks.scale_thresholds(kind.scale),
            self.ranks.number_base,
            out,
        )
        return out

    def _times(self, values: npt.NDArray[np.int64]) -> Codes:
        out = np.empty(len(values), dtype=np.uint32)
        rank_kernels.rank_integers(values, self.ranks.times, self.ranks.time_base, out)
        return out

    # -- strings -------------------------------------------------------------------------------

    @cached_property
    def _known(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
        """The strings that filters mention, in sorted order, as (offsets, bytes)."""
        packed = [text.encode() for text in self.ranks.sorted_strings]
        offsets = np.zeros(len(packed) + 1, dtype=np.int64)
        np.cumsum([len(one) for one in packed], out=offsets[1:])
        return offsets, np.frombuffer(b"".join(packed) + b"\0", dtype=np.uint8)

    @cached_property
    def _table(self) -> npt.NDArray[np.int32]:
        offsets, data = self._known
        size = 1 << max(3, (2 * len(offsets)).bit_length())
        table = np.full(size, -1, dtype=np.int32)
        rank_kernels.fill_table(offsets, data, table)
        return table

    def _strings(self, column: Any) -> Codes:
        starts, text = string_buffers(column)
        out = np.empty(len(column), dtype=np.uint32)
        exact, gaps = self.ranks.string_codes
        offsets, data = self._known
        if self.ranks.ordered:
            rank_kernels.rank_ordered_strings(starts, text, offsets, data, exact, gaps, out)
        else:
            unknown = np.uint32(self.ranks.unknown_string)
            rank_kernels.rank_known_strings(
                starts, text, self._table, offsets, data, exact, unknown, out
            )
        return out


def string_buffers(column: Any) -> tuple[npt.NDArray[Any], npt.NDArray[np.uint8]]:
    """(starts [n + 1], bytes) of an Arrow string array, without copying."""
    _, offsets, data = column.buffers()
    wide = pa.types.is_large_string(column.type)
    starts: npt.NDArray[Any] = np.frombuffer(offsets, dtype=np.int64 if wide else np.int32)
    text = np.frombuffer(data, dtype=np.uint8) if data is not None and data.size else _NO_BYTES
    return starts[column.offset : column.offset + len(column) + 1], text


_NO_BYTES = np.zeros(1, dtype=np.uint8)


def _values(column: Any, kind: Any) -> npt.NDArray[Any]:
    """The values of a primitive array as they are in memory. At nulls, the values are arbitrary."""
    data = column.buffers()[1]
    if data is None or len(column) == 0:
        return np.zeros(len(column), dtype=kind)
    return np.frombuffer(data, dtype=kind)[column.offset : column.offset + len(column)]


def in_micros(column: Any) -> Any:
    """A column of timestamps in microseconds. Times between two microseconds are rounded down, even
    before 1970."""
    kind = column.type
    if kind.unit == "ns":
        column = pc.floor_temporal(column.cast(pa.timestamp("ns")), unit="microsecond")
    return column.cast(pa.timestamp("us", kind.tz), safe=False)


def fields(column: Any, name: str) -> Any:
    """A field of a struct column, null where the struct is null."""
    found = pc.struct_field(column, name)
    return pc.if_else(column.is_valid(), found, None) if column.null_count else found
