"""Text to canonical filter: parse, compare, explain, cover."""

from tidings.filters.explanation import BoxReport, Explanation, TestReport, format_value
from tidings.filters.filter import Filter, need_filter, need_mapping, parse
from tidings.filters.language.attributes import Attributes
from tidings.filters.values.ontology import Ontology

__all__ = [
    "Attributes",
    "BoxReport",
    "Explanation",
    "Filter",
    "Ontology",
    "TestReport",
    "format_value",
    "need_filter",
    "need_mapping",
    "parse",
]
