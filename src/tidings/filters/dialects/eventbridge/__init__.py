""""""

from tidings.filters.dialects.eventbridge.dialect import nested_attributes, without_nested

__all__ = [
    "nested_attributes",
    "without_nested",
]
