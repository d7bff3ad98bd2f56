"""The nodes of a CloudEvents SQL expression, and their canonical text.

AND, OR and XOR are chains: `a AND b AND c` is one node. AND, OR and XOR have the same precedence
and associate to the left, so `a OR b AND c` is an AND of an OR. `x NOT IN (...)` is a NOT of an IN.
"""

from __future__ import annotations

from typing import Literal as Choice

import msgspec

Scalar = bool | int | str
Comparison = Choice["=", "!=", "<", "<=", ">", ">="]
LOGIC, COMPARISON, SUM, PRODUCT, POSTFIX, UNARY, ATOM = range(1, 8)
ARITHMETIC = {"+": SUM, "-": SUM, "*": PRODUCT, "/": PRODUCT, "%": PRODUCT}


class Constant(msgspec.Struct, frozen=True):
    value: Scalar


class Name(msgspec.Struct, frozen=True):
    """An attribute of the event."""

    name: str


class Exists(msgspec.Struct, frozen=True):
    name: str


class Minus(msgspec.Struct, frozen=True):
    item: Node


class Not(msgspec.Struct, frozen=True):
    item: Node


class Logic(msgspec.Struct, frozen=True):
    op: Choice["AND", "OR", "XOR"]
    items: tuple[Node, ...]


class Arithmetic(msgspec.Struct, frozen=True):
    op: str
    left: Node
    right: Node


class Compare(msgspec.Struct, frozen=True):
    op: Comparison
    left: Node
    right: Node


class Like(msgspec.Struct, frozen=True):
    item: Node
    pattern: str


class In(msgspec.Struct, frozen=True):
    item: Node
    options: tuple[Node, ...]


class Function(msgspec.Struct, frozen=True):
    """A call to a function by its name in capital letters; the function need not exist."""

    name: str
    args: tuple[Node, ...]


Node = Constant | Name | Exists | Minus | Not | Logic | Arithmetic | Compare | Like | In | Function


def children(node: Node) -> tuple[Node, ...]:
    match node:
        case Minus(item) | Not(item) | Like(item):
            return (item,)
        case Logic(items=items) | Function(args=items):
            return items
        case Arithmetic(left=left, right=right) | Compare(left=left, right=right):
            return (left, right)
        case In(item, options):
            return (item, *options)
        case _:
            return ()


def count(node: Node) -> int:
    """The number of nodes of an expression, without constants."""
    total, stack = 0, [node]
    while stack:
        one = stack.pop()
        total += not isinstance(one, Constant)
        stack.extend(children(one))
    return total


def names_of(node: Node) -> list[str]:
    """The attributes that an expression reads, in alphabetical order."""
    found: set[str] = set()
    stack = [node]
    while stack:
        one = stack.pop()
        if isinstance(one, (Name, Exists)):
            found.add(one.name)
        stack.extend(children(one))
    return sorted(found)


def text_of(node: Node) -> str:
    """The text of a node; parsing the text gives an equal node."""
    return _write(node)[0]


def _bracket(node: Node, least: int) -> str:
    text, binding = _write(node)
    return text if binding >= least else f"({text})"


def _write(node: Node) -> tuple[str, int]:
    match node:
        case Constant(bool(value)):
            return "TRUE" if value else "FALSE", ATOM
        case Constant(int(value)):
            return str(value), ATOM
        case Constant(value):
            return _quote(str(value)), ATOM
        case Name(name):
            return name, ATOM
        case Exists(name):
            return f"EXISTS {name}", UNARY
        case Not(Like(item, pattern)):
            return f"{_bracket(item, UNARY)} NOT LIKE {_quote(pattern)}", POSTFIX
        case Not(In(item, options)):
            return f"{_bracket(item, UNARY)} NOT IN ({_write_list(options)})", POSTFIX
        case Like(item, pattern):
            return f"{_bracket(item, UNARY)} LIKE {_quote(pattern)}", POSTFIX
        case In(item, options):
            return f"{_bracket(item, UNARY)} IN ({_write_list(options)})", POSTFIX
        case Not(item):
            return f"NOT {_bracket(item, UNARY)}", UNARY
        case Minus(item):
            return f"-{_bracket(item, UNARY)}", UNARY
        case Logic(op, items):
            return f" {op} ".join(_bracket(item, COMPARISON) for item in items), LOGIC
        case Compare(op, left, right):
            return f"{_bracket(left, SUM)} {op} {_bracket(right, SUM)}", COMPARISON
        case Arithmetic(op, left, right):
            binding = ARITHMETIC[op]
            return f"{_bracket(left, binding)} {op} {_bracket(right, binding + 1)}", binding
        case Function(name, args):
            return f"{name}({_write_list(args)})", ATOM


def _write_list(items: tuple[Node, ...]) -> str:
    return ", ".join(map(text_of, items))


def _quote(value: str) -> str:
    """Write a string as a literal, in single quotes if possible, otherwise in double quotes.

    The value of a literal never has an odd number of backslashes before the literal's own kind of
    quote. So in any string that was parsed, at most one kind of quote has an odd number of
    backslashes before it.
    """
    for quote in "'\"":
        piece = quote + value.replace(quote, "\\" + quote) + quote
        if unquote(piece) == value and _closes(piece):
            return piece
    raise AssertionError(f"no literal can express {value!r}")


def _closes(piece: str) -> bool:
    """Whether the last character is the quote that closes the literal."""
    at = 1
    while piece[at] != piece[0]:
        at += 2 if piece[at] == "\\" else 1
        if at >= len(piece):
            return False
    return at == len(piece) - 1


def unquote(piece: str) -> str:
    """The value of a literal: a backslash before the literal's own kind of quote is dropped; all
    other backslashes are kept."""
    quote, body = piece[0], piece[1:-1]
    if "\\" not in body:
        return body
    out: list[str] = []
    at = 0
    while at < len(body):
        pair = body[at : at + 2] if body[at] == "\\" else body[at]
        out.append(quote if pair == "\\" + quote else pair)
        at += len(pair)
    return "".join(out)
