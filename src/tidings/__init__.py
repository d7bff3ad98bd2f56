"""tidings: leave standing interests, and be told once about everything that matches.

import tidings

f = tidings.parse("symbol = 'SNE' AND price > 90")
f.matches({"symbol": "SNE", "price": 95.0})
"""

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
    "Node",
    "NotificationError",
    "Ontology",
    "Preprocessor",
    "TestReport",
    "TidingsError",
    "parse",
]
