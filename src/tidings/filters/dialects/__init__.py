""""""

from tidings.filters.dialects.registry import DIALECTS, Context

__all__ = [
    "DIALECTS",
    "Context",
]
