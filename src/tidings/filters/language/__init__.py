"""The expression tree: how it is built and checked, what it means, how it is written.

    tokens ──> parser of a dialect ──> builders ──> expression ──> evaluation, sql_writer
                                       refuses with a position; folds constants

    tokens.py         text to tokens
    builders.py       checked construction; parsers call it for each thing that they have read
    folding.py        constants are computed when a filter is parsed
    expression.py     the immutable tree, at most MAX_DEPTH deep
    functions.py      the table of functions: names, arities, result types, bodies; parsers know a
                      new row at once, builders.py has checks that types can't make
    static_types.py   the type of an expression, as far as it is known before any event
    attributes.py     the declared attributes of a channel
    evaluation.py     the reference semantics, in SQL's three values
    sql_writer.py     expressions back to text; the text of a term is its identity
    dialect.py        what a dialect is to this room: one object with hooks, in one table
    foreign.py, nested.py    programs of dialects inside an expression; values that may be nested

For other rooms; users get `Attributes` from `tidings`. Start at expression.py, then evaluation.py.
"""

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
