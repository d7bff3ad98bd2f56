"""tidings: leave standing interests, and be told once about everything that matches.

import tidings

f = tidings.parse("symbol = 'SNE' AND price > 90")
f.matches({"symbol": "SNE", "price": 95.0})
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tidings.filters import (
    Attributes,
    BoxReport,
    Explanation,
    Filter,
    Ontology,
    TestReport,
    parse,
)
from tidings.graph import ContentGraph, DynamicPreprocessor, Node, Preprocessor
from tidings.model import (
    AttributesError,
    EnvironmentProblem,
    FilterError,
    GraphError,
    NotificationError,
    TidingsError,
)

if TYPE_CHECKING:
    from tidings.matching import Matcher

__version__ = "0.1.0"

__all__ = [
    "Attributes",
    "AttributesError",
    "BoxReport",
    "ContentGraph",
    "DynamicPreprocessor",
    "EnvironmentProblem",
    "Explanation",
    "Filter",
    "FilterError",
    "GraphError",
    "Matcher",
    "Node",
    "NotificationError",
    "Ontology",
    "Preprocessor",
    "TestReport",
    "TidingsError",
    "parse",
]


def __getattr__(name: str) -> Any:
    """The matcher is loaded when it is first asked for: Numba takes its time."""
    if name == "Matcher":
        from tidings.matching import Matcher

        return Matcher
    raise AttributeError(f"module 'tidings' has no attribute '{name}'")
