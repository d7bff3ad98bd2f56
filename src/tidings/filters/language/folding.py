"""Constant folding while a filter is parsed: `60 * 60` becomes 3600."""

from __future__ import annotations

from tidings.filters.language.evaluation import evaluate
from tidings.filters.language.expression import Call, Expression, Literal
from tidings.filters.language.functions import FUNCTIONS


def fold_constants(node: Call) -> Expression:
    """Compute a call whose arguments are all constants; return any other call unchanged.

    60 * 60   ->   3600
    """
    function, args = FUNCTIONS[node.name], node.args
    if function.strict and any(isinstance(arg, Literal) and arg.value is None for arg in args):
        return Literal(None)
    # a regular expression is never folded, because identities of stored filters depend on that
    if node.name != "rlike" and all(isinstance(arg, Literal) for arg in args):
        value = evaluate(node, {})
        return Literal(tuple(value) if isinstance(value, list) else value)
    return node
