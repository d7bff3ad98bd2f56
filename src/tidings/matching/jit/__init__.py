"""Compile kernels with Numba, cache them, and pass arrays to them; nothing in this folder depends
on filters.

    sources of the room ──digest──> kernels/<digest>/<folder>/*.nbi, *.nbc
                                          ^ v
    function over arrays ──@kernel──> machine code for the types of a call, without the GIL
    named tuples of arrays ──pointer_table──> one int64 table ──> the same arrays in the kernel
    array_pool ──memory──> large results ──the last array is deleted──> array_pool

    kernel_compiler.py   decorators for kernels; a digest of the room's sources names the cache
    byte_kernels.py      writes bytes, for kernels of other rooms
    hash_kernels.py      looks up numbers in hash tables, for kernels of other rooms
    simd.py              sixty-four comparisons at a time, written as LLVM vector instructions
    pointer_table.py     passes many arrays to a kernel as one table of addresses
    array_pool.py        memory for large results, reused once no array refers to it
    gil.py               how background work and matching share the GIL

A new kernel is a free function over arrays in a module `*_kernels.py` beside its caller. A kernel
with a single caller may be in the caller's module. The docstring of the kernel, or of its module,
has the dtype and shape of each argument. The digest covers the sources of `matching`, and in other
rooms the folder of the kernel. So constants from other files must be passed as arguments; otherwise
the cached code would keep their old values.

A kernel that Python calls for each single event has `@short_kernel` if its work is short
(kernel_compiler.py says why). matching/warming.py must load all kernels that single events need.
tests/matching/test_warming.py checks that none of these is compiled later; add a new module of such
kernels there.

This folder is for matching and other rooms with kernels, not for users. Start at
kernel_compiler.py.
"""

from tidings.matching.jit.byte_kernels import copy_bytes, put_number
from tidings.matching.jit.gil import shorten_turns
from tidings.matching.jit.hash_kernels import find_place
from tidings.matching.jit.kernel_compiler import (
    KERNEL_FILES,
    SHIPPED_KERNELS,
    kernel,
    kernel_folders,
    short_kernel,
    sources_digest,
)

__all__ = [
    "KERNEL_FILES",
    "SHIPPED_KERNELS",
    "copy_bytes",
    "find_place",
    "kernel",
    "kernel_folders",
    "put_number",
    "short_kernel",
    "shorten_turns",
    "sources_digest",
]
