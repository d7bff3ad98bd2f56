"""What a kernel sees through a pointer table is what Python put there, field by field."""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt
import pytest

from tidings.matching.array_fields import ArrayField, Int64, UInt8, UInt16, fields_of
from tidings.matching.jit.pointer_table import pointer_table, views_of
from tidings.matching.segments.probe_kernels import TABLE

Array = npt.NDArray[Any]


class One(NamedTuple):
    small: UInt8
    rows: Annotated[Array, ArrayField(np.int64, 3)]


class Other(NamedTuple):
    middle: UInt16
    large: Int64


views = views_of(One, Other)


@numba.njit
def look(table: Any) -> Any:
    one, other = views(table)
    other.large[0] = 7
    shapes = one.small.shape[0], one.rows.shape[0], one.rows.shape[1], other.middle.shape[0]
    return shapes, one.small.sum(), one.rows[1, 2], one.rows[:, 0].sum(), other.middle[2]


def arrays() -> tuple[One, Other]:
    return (
        One(np.array([200, 100], np.uint8), np.arange(6, dtype=np.int64).reshape(2, 3)),
        Other(np.array([1, 2, 60_000], np.uint16), np.array([-1, 5])),
    )


def test_a_kernel_sees_all_arrays_by_name() -> None:
    one, other = arrays()
    assert look(pointer_table(one, other)) == ((2, 2, 3, 3), 300, 5, 3, 60_000)
    assert other.large.tolist() == [7, 5]  # no copy


@pytest.mark.parametrize(
    ("field", "array"),
    [
        ("small", np.zeros(2, np.int8)),
        ("rows", np.zeros((2, 4), np.int64)),
        ("rows", np.zeros(6, np.int64)),
        ("rows", np.zeros((3, 2), np.int64).T),
    ],
)
def test_an_array_that_is_not_as_its_field_says_is_refused(field: str, array: Array) -> None:
    one, other = arrays()
    with pytest.raises(TypeError, match=f"{field} is an array of {array.dtype}"):
        pointer_table(one._replace(**{field: array}), other)


def test_no_two_tuples_of_the_probe_share_a_field() -> None:
    """A snapshot has one file for each."""
    names = [name for kind in TABLE for name in fields_of(kind)]
    assert len(names) == len(set(names))
