"""Write expressions as SQL, the default dialect, with brackets only where they are needed.

The text of an expression is also its identity: two terms with equal texts are the same term.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from decimal import Decimal
from functools import lru_cache
from typing import Any

from tidings.filters.language.expression import (
    And,
    Attribute,
    Between,
    Call,
    Case,
    Compare,
    Exists,
    Expression,
    In,
    IsNull,
    IsTruth,
    Literal,
    Not,
    Or,
    Variable,
)

RESERVED = frozenset(
    {"AND", "OR", "NOT", "IN", "IS", "LIKE", "ILIKE", "RLIKE", "REGEXP", "BETWEEN", "NULL", "TRUE",
     "FALSE", "ESCAPE", "DIV"}
)  # fmt: skip
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
# NUL is not written as \0, because before two digits that would be an octal escape
_ESCAPES = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t",
            "\0": "\\u0000"}  # fmt: skip
_ESCAPED = re.compile(r"[\\'\n\r\t\0]")

# the precedence of each kind of node; a child of lower precedence gets brackets
_OR, _AND, _NOT, _PREDICATE, _COMPARISON, _SUM, _PRODUCT, _UNARY, _ATOM = range(1, 10)
_BINARY = {"+": _SUM, "-": _SUM, "*": _PRODUCT, "/": _PRODUCT, "%": _PRODUCT, "div": _PRODUCT}
_LIKES = {"like": "LIKE", "ilike": "ILIKE", "rlike": "RLIKE"}


def text_of(node: Expression) -> str:
    """Write the expression as SQL."""
    return _write(node)[0]


@lru_cache(maxsize=4096)
def name_text(path: tuple[str, ...]) -> str:
    return ".".join(_quote_name(step) for step in path)


def _quote_name(name: str) -> str:
    if _PLAIN_NAME.fullmatch(name) and name.upper() not in RESERVED:
        return name
    return "`" + name.replace("`", "``") + "`"


def literal_text(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return _write_double(value)
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, str):
        return "'" + _ESCAPED.sub(lambda m: _ESCAPES[m.group()], value) + "'"
    if isinstance(value, dt.datetime):
        naive = value.astimezone(dt.UTC).replace(tzinfo=None) if value.tzinfo else value
        return f"TIMESTAMP '{naive.isoformat(sep=' ')}'"
    if isinstance(value, dt.date):
        return f"DATE '{value.isoformat()}'"
    return "array(" + ", ".join(literal_text(v) for v in value) + ")"


def _write_double(value: float) -> str:
    if math.isnan(value):
        return "double('NaN')"
    if math.isinf(value):
        return "double('Infinity')" if value > 0 else "double('-Infinity')"
    text = repr(value)
    # without the D, Spark would read the number as a decimal, and arithmetic on decimals gives
    # different results
    return text + "D" if "e" not in text and value.is_integer() else text


def _write(node: Expression) -> tuple[str, int]:
    match node:
        case Attribute(path):
            return name_text(path), _ATOM
        case Literal(value):
            text = literal_text(value)
            return text, _UNARY if text.startswith("-") else _ATOM
        case Compare(op, left, right):
            return f"{_bracket(left, _SUM)} {op} {_bracket(right, _SUM)}", _COMPARISON
        case And(items):
            return " AND ".join(_bracket(i, _NOT) for i in items) or "true", _AND
        case Or(items):
            return " OR ".join(_bracket(i, _AND) for i in items) or "false", _OR
        case In() | Between() | IsNull() | IsTruth():
            return _write_predicate(node, ""), _PREDICATE
        case Not(item):
            return _write_negated(item), _NOT
        case Call():
            return _write_call(node, "")
        case Variable(name, path):
            return name_text((name, *path)), _ATOM
        case Exists(items, name, condition):
            return f"exists({text_of(items)}, {name_text((name,))} -> {text_of(condition)})", _ATOM
        case Case(branches, default):
            return _write_case(branches, default), _ATOM


def _write_case(branches: tuple[tuple[Expression, Expression], ...], default: Expression) -> str:
    parts = [f"WHEN {text_of(condition)} THEN {text_of(value)}" for condition, value in branches]
    if default != Literal(None):
        parts.append(f"ELSE {text_of(default)}")
    return f"CASE {' '.join(parts)} END"


def _bracket(node: Expression, at_least: int) -> str:
    text, binding = _write(node)
    return text if binding >= at_least else f"({text})"


def _write_negated(item: Expression) -> str:
    if isinstance(item, (In, Between, IsNull, IsTruth)):
        return _write_predicate(item, "NOT ")
    if isinstance(item, Call) and item.name in _LIKES:
        return _write_call(item, "NOT ")[0]
    if isinstance(item, Compare) and item.op == "<=>":
        return f"{_bracket(item.left, _SUM)} IS DISTINCT FROM {_bracket(item.right, _SUM)}"
    if isinstance(item, (Attribute, Variable, Call, Case, Exists, Literal)):
        return "NOT " + _bracket(item, _ATOM)
    if isinstance(item, Not):
        return "NOT " + _bracket(item, _NOT)
    return f"NOT ({text_of(item)})"


def _write_predicate(node: In | Between | IsNull | IsTruth, no: str) -> str:
    item = _bracket(node.item, _SUM)
    match node:
        case In(options=options):
            return f"{item} {no}IN (" + ", ".join(text_of(o) for o in options) + ")"
        case Between(low=low, high=high):
            return f"{item} {no}BETWEEN {_bracket(low, _SUM)} AND {_bracket(high, _SUM)}"
        case IsNull():
            return f"{item} IS {no}NULL"
        case IsTruth(truth=wanted):
            return f"{item} IS {no}{'TRUE' if wanted else 'FALSE'}"


def _write_call(node: Call, no: str) -> tuple[str, int]:
    name, args = node.name, node.args
    if name in _BINARY:
        binding = _BINARY[name]
        left, right = _bracket(args[0], binding), _bracket(args[1], binding + 1)
        return f"{left} {name} {right}", binding
    if name == "negative":
        text = _bracket(args[0], _UNARY)
        return ("- " if text.startswith("-") else "-") + text, _UNARY  # -- would open a comment
    if name in _LIKES:
        return f"{_bracket(args[0], _SUM)} {no}{_LIKES[name]} {_bracket(args[1], _SUM)}", _PREDICATE
    if name == "cast":
        return f"CAST({text_of(args[0])} AS {args[1].value})", _ATOM  # type: ignore[union-attr]
    if name == "subject_matches":
        return f"subject({text_of(args[1])})", _ATOM
    if name == "foreign":
        # only the text of the program is written: it already names the attributes, which are the
        # other arguments
        name, args = node.bound.function, args[:1]
    if name == "apply":
        name, args = str(args[0].value), args[1:]  # type: ignore[union-attr]
    return f"{name}(" + ", ".join(text_of(a) for a in args) + ")", _ATOM
