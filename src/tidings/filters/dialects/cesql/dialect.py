"""CloudEvents SQL: the expression language of CloudEvents, version 1.0.0.

The modules of this folder:

    syntax        the nodes of an expression, and their canonical text
    parser        text to nodes
    cesql_values  the three types, converting attributes to them, casts
    builtins      the functions
    machine       evaluates a node on an event, by the specification
    program       an expression as a function of attributes, written cesql('...') in SQL
    translate     nodes to an expression of tidings: tests on sets where possible, else programs
"""

from __future__ import annotations

from tidings.filters.dialects.cesql import parser, syntax
from tidings.filters.dialects.cesql.program import call_of
from tidings.filters.dialects.cesql.translate import Translator
from tidings.filters.language.dialect import Context, Embedded
from tidings.filters.language.expression import Attribute, Compare, Expression, Literal
from tidings.model import FilterError, article


def parse(text: str, context: Context) -> Expression:
    """Parse a condition; raise FilterError with a position if the text is not valid."""
    node = parser.read(text, context.attributes, most_parts=context.most_parts)
    translator = Translator(context.attributes)
    kind = translator.kind(node)
    if kind not in (None, "boolean"):
        raise FilterError(
            f"found {article(kind)}, expected a condition such as type = 'com.example'", text
        )
    # a filter that is only an attribute matches only if the value is the Boolean true
    if isinstance(node, syntax.Name):
        declared = translator.find_declared(node)
        if declared not in (None, "boolean"):
            raise FilterError(
                f"{node.name} is {article(declared)}, expected a condition such as {node.name} > 5",
                text,
            )
        return Compare("=", Attribute((node.name,)), Literal(True))
    return translator.true(node)


def embed(text: str, context: Context) -> Embedded:
    """Parse the text inside `cesql('...')` and return a call to its program."""
    try:
        node = parser.read(text, context.attributes, most_parts=context.most_parts)
    except FilterError as problem:
        raise type(problem)(f"in the expression inside cesql(): {problem}", text) from None
    return Embedded(call_of(node), syntax.count(node))
