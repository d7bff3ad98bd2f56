""""""

from tidings.matching.jit.compiling import short_kernel

__all__ = [
    "short_kernel",
]
