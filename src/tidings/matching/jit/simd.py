"""Compare sixty-four values at a time, with LLVM instructions.

`inside(column, at, low, width)` compares `column[at : at + 64]` with an interval and returns the
results as the bits of one integer, lowest bit first. Numba does not turn a loop over these values
into vector comparisons with mask results. Written as LLVM vector instructions, the loop becomes two
AVX-512 comparisons, eight AVX2 comparisons, or NEON code, depending on the machine.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

LANES = 64
_BIT, _SHORT, _INT, _LONG = (ir.IntType(n) for n in (1, 16, 32, 64))
_VECTOR = ir.VectorType(_SHORT, LANES)


def _inside(_context: Any, column: Any, at: Any, low: Any, width: Any) -> Any:
    """uint64: bit i is set if column[at + i] is in the range low .. low + width; all values are
    uint16, and one comparison tests both ends.

    At least 64 elements of the column must be readable from `at` on.
    """
    if not isinstance(column, types.Array) or column.dtype != types.uint16:
        return None
    signature = types.uint64(column, types.intp, types.uint16, types.uint16)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        array = context.make_array(sig.args[0])(context, builder, args[0])
        place = builder.gep(array.data, [args[1]])
        values = builder.load(builder.bitcast(place, ir.PointerType(_VECTOR)), align=2)
        # unsigned arithmetic wraps around: a value below low becomes very large, so one comparison
        # tests both ends
        distance = builder.sub(values, _splat(builder, args[2]))
        within = builder.icmp_unsigned("<=", distance, _splat(builder, args[3]))
        return builder.bitcast(within, _LONG)

    return signature, generate


def _splat(builder: Any, scalar: Any) -> Any:
    undefined = ir.Constant(_VECTOR, ir.Undefined)
    first = builder.insert_element(undefined, scalar, ir.Constant(_INT, 0))
    zeros = ir.Constant(ir.VectorType(_INT, LANES), [0] * LANES)
    return builder.shuffle_vector(first, undefined, zeros)


def _lowest_bit(_context: Any, mask: Any) -> Any:
    """The index of the lowest set bit of a uint64 that is not 0."""
    signature = types.int64(types.uint64)

    def generate(_target: Any, builder: Any, _sig: Any, args: Any) -> Any:
        kind = ir.FunctionType(_LONG, [_LONG, _BIT])
        count = builder.module.declare_intrinsic("llvm.cttz", [_LONG], kind)
        return builder.call(count, [args[0], ir.Constant(_BIT, 1)])

    return signature, generate


def _count_bits(_context: Any, mask: Any) -> Any:
    """The number of set bits of a uint64."""
    signature = types.int64(types.uint64)

    def generate(_target: Any, builder: Any, _sig: Any, args: Any) -> Any:
        kind = ir.FunctionType(_LONG, [_LONG])
        return builder.call(builder.module.declare_intrinsic("llvm.ctpop", [_LONG], kind), args)

    return signature, generate


inside: Any = intrinsic(_inside)
count_bits: Any = intrinsic(_count_bits)
lowest_bit: Any = intrinsic(_lowest_bit)
