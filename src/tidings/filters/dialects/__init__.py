""""""

from tidings.filters.dialects.registry import parse_term, read
from tidings.filters.language.dialect import DIALECTS, Context, Dialect, register

__all__ = [
    "DIALECTS",
    "Context",
    "Dialect",
    "parse_term",
    "read",
    "register",
]
