"""How kernels are compiled by Numba, cached, and handed their arrays; nothing here knows filters.

    compiling.py       decorators for kernels; the cache is named by a digest of the room's sources
    simd.py            sixty-four comparisons at a time, written as LLVM vector instructions
    pointer_table.py   many arrays for a kernel as one table of addresses
    array_pool.py      memory for large results, used again when nobody holds it
    gil.py             how background work and matching share the interpreter's lock

A new kernel is a free function over arrays in a module `*_kernels.py` beside its caller, with the
dtype and shape of each argument in the docstring. The digest covers `matching` alone, and Numba
looks only at the file of a kernel: constants from anywhere else are arguments of it, or cached code
keeps old ones.

For matching, network, snapshots and spark, not for users. Start at compiling.py.
"""

from tidings.matching.jit.compiling import short_kernel

__all__ = [
    "short_kernel",
]
