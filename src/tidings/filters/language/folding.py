"""Constants are computed when a filter is parsed, so `60 * 60` is as good as 3600."""

from __future__ import annotations

from tidings.filters.language.evaluation import evaluate
from tidings.filters.language.expression import Call, Expression, Literal
from tidings.filters.language.functions import FUNCTIONS


def fold_constants(node: Call) -> Expression:
    """The value of a call of constants; the call itself where it reads anything.

    60 * 60   ->   3600
    """
    function, args = FUNCTIONS[node.name], node.args
    if function.strict and any(isinstance(arg, Literal) and arg.value is None for arg in args):
        return Literal(None)
    # a regular expression waits for an event, however constant: identities rest on that
    if node.name != "rlike" and all(isinstance(arg, Literal) for arg in args):
        value = evaluate(node, {})
        return Literal(tuple(value) if isinstance(value, list) else value)
    return node
