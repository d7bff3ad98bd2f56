"""Pass many arrays to a kernel as one table: the address and the length of each.

Numba takes a tenth of a microsecond to unpack each array argument, and the kernel for single events
needs thirty arrays, which never change. So the kernel gets one table of addresses, and creates the
arrays itself. Both sides use the fields of the same named tuples (array_fields.py) in the same
order, so nobody has to write positions in the table by hand:

    table = pointer_table(boxes, probe)     in Python: int64 [n, 2]
    views = views_of(Boxes, Probe)          beside the kernel
    boxes, probe = views(table)             in the kernel

The code that creates a table must keep the arrays alive for as long as the table.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numba.np import arrayobj
from numba.np.numpy_support import from_dtype

from tidings.matching.array_fields import ArrayField, fields_of

Array = npt.NDArray[Any]
# Numba's functions have no type annotations.
_make_array: Any = arrayobj.make_array
_populate_array: Any = arrayobj.populate_array
_tuple_of: Any = types.BaseTuple.from_types
_LONG = ir.IntType(64)


def pointer_table(*tuples: Any) -> Array:
    """int64 [n, 2]: address and number of rows of each array. Arrays must be C-contiguous and match
    their declared fields."""
    found: list[tuple[int, int]] = []
    for one in tuples:
        for name, field in fields_of(type(one)).items():
            array = getattr(one, name)
            width = (field.width,) if field.width else ()
            is_right = array.dtype == field.dtype and array.shape[1:] == width
            if not is_right or not array.flags.c_contiguous:
                raise TypeError(
                    f"{name} is an array of {array.dtype} of shape {array.shape}, expected "
                    f"{np.dtype(field.dtype)} of shape {('n', *width)}, C-contiguous"
                )
            found.append((array.ctypes.data, len(array)))
    return np.array(found, np.int64)


def views_of(*kinds: type) -> Any:
    """A function for kernels that turns a pointer table into named tuples of these classes."""
    fields = [list(fields_of(kind).values()) for kind in kinds]
    tuples = [
        _tuple_of([_array_type(one) for one in members], kind)
        for kind, members in zip(kinds, fields, strict=True)
    ]

    def views(_context: Any, table: Any) -> Any:
        signature = _tuple_of(tuples)(table)

        def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            numbers = _make_array(sig.args[0])(context, builder, args[0]).data
            places = itertools.count()

            def next_number() -> Any:
                return builder.load(builder.gep(numbers, [_LONG(next(places))]))

            found = []
            for kind, members in zip(tuples, fields, strict=True):
                arrays = [
                    _view(context, builder, one, next_number(), next_number()) for one in members
                ]
                found.append(context.make_tuple(builder, kind, arrays))
            return context.make_tuple(builder, sig.return_type, found)

        return signature, generate

    return intrinsic(views)


def _array_type(field: ArrayField) -> Any:
    return types.Array(from_dtype(np.dtype(field.dtype)), 2 if field.width else 1, "C")


def _view(context: Any, builder: Any, field: ArrayField, address: Any, count: Any) -> Any:
    """An array over the given memory. It does not keep the memory alive."""
    array = _make_array(_array_type(field))(context, builder)
    size = np.dtype(field.dtype).itemsize
    _populate_array(
        array,
        data=builder.inttoptr(address, array.data.type),
        shape=[count, _LONG(field.width)] if field.width else [count],
        strides=[_LONG(field.width * size), _LONG(size)] if field.width else [_LONG(size)],
        itemsize=size,
        meminfo=None,
    )
    return array._getvalue()
