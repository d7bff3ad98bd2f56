"""Declare the types of a named tuple's arrays once, where the tuple is defined:

    class Boxes(NamedTuple):
        slot: UInt32                                    one dimension
        tests: Annotated[Array, ArrayField(np.uint16, 3)]     rows of three

Files, pointer tables and the views in kernels are derived from this declaration, by the names and
the order of its fields. This module does not import Numba, which is slow to load.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple, get_type_hints

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


class ArrayField(NamedTuple):
    """The type of an array's elements: numbers of one type, or rows of `width` such numbers."""

    dtype: type[np.generic]
    width: int = 0


UInt8 = Annotated[Array, ArrayField(np.uint8)]
UInt16 = Annotated[Array, ArrayField(np.uint16)]
UInt32 = Annotated[Array, ArrayField(np.uint32)]
Int64 = Annotated[Array, ArrayField(np.int64)]


def fields_of(kind: Any) -> dict[str, ArrayField]:
    """The array fields of a named tuple class, in order."""
    hints = get_type_hints(kind, include_extras=True)
    return {name: hints[name].__metadata__[0] for name in kind._fields}
