""""""

from tidings.filters.language.attributes import Path, article, conform
from tidings.filters.language.evaluation import evaluate, read, term_value
from tidings.filters.language.expression import (
    And,
    Attribute,
    Between,
    Call,
    Compare,
    Comparison,
    Expression,
    In,
    IsNull,
    IsTruth,
    Literal,
    Not,
    Or,
    attributes_of,
)
from tidings.filters.language.functions import FUNCTIONS, MOST_TEXT
from tidings.filters.language.nested import nested_attributes, without_nested
from tidings.filters.language.sql_writer import name_text, text_of

__all__ = [
    "FUNCTIONS",
    "MOST_TEXT",
    "And",
    "Attribute",
    "Between",
    "Call",
    "Compare",
    "Comparison",
    "Expression",
    "In",
    "IsNull",
    "IsTruth",
    "Literal",
    "Not",
    "Or",
    "Path",
    "article",
    "attributes_of",
    "conform",
    "evaluate",
    "name_text",
    "nested_attributes",
    "read",
    "term_value",
    "text_of",
    "without_nested",
]
