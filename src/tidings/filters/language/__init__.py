"""The expression tree: building and checking it, evaluating it, writing it as text.

    tokens ──> parser of a dialect ──> builders ──> expression ──> evaluation, sql_writer
                                       refuses with a position; folds constants

    tokens.py         splits text into tokens
    builders/         checked construction; parsers call it for each construct that they read
    folding.py        computes constants when a filter is parsed
    expression.py     the immutable tree, at most MAX_DEPTH deep
    functions.py      the table of functions: names, arities, result types, bodies. Parsers accept
                      a new row at once; checks beyond types are in builders/, and a result type
                      that depends on the arguments is in static_types.py
    static_types.py   the type of an expression, as far as it is known before any event
    attributes.py     the declared attributes of a channel
    evaluation.py     the reference semantics, in three-valued logic
    sql_writer.py     writes expressions as SQL; the text of a term is its identity
    dialect.py        the interface of a dialect, and the table of all dialects
    named_parts.py    names of parts of a filter, which change nothing but what is reported
    foreign.py, nested.py    programs of dialects inside an expression; values that may be nested

These modules are for other rooms; users get `Attributes` from `tidings`. Start at expression.py,
then evaluation.py.
"""

from tidings.filters.language.attributes import conform
from tidings.filters.language.dialect import naming_dialect
from tidings.filters.language.evaluation import evaluate, find, read, term_value
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
    children,
    variables_of,
)
from tidings.filters.language.foreign import null_paths, program_of
from tidings.filters.language.functions import FUNCTIONS, MOST_TEXT
from tidings.filters.language.named_parts import may_have_names
from tidings.filters.language.nested import nested_attributes, without_nested
from tidings.filters.language.sql_writer import name_text, text_of
from tidings.filters.language.static_types import Types
from tidings.model import Path, article

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
    "Types",
    "article",
    "attributes_of",
    "children",
    "conform",
    "evaluate",
    "find",
    "may_have_names",
    "name_text",
    "naming_dialect",
    "nested_attributes",
    "null_paths",
    "program_of",
    "read",
    "term_value",
    "text_of",
    "variables_of",
    "without_nested",
]
