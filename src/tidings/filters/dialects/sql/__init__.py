""""""

from tidings.filters.dialects.sql.dialect import parse_term

__all__ = [
    "parse_term",
]
