"""Parse text into nodes. The precedence levels, loosest first, are those of section 3.6 of the
specification:

    AND OR XOR 1   = < > ... 2   + - 3   * / % 4   LIKE IN 5   NOT - EXISTS 6

So `NOT x = 1` is `(NOT x) = 1`, and a chain of AND, OR and XOR associates to the left.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple, NoReturn

from tidings.filters.dialects.cesql.builtins import BUILTINS
from tidings.filters.dialects.cesql.cesql_values import INT_MAX, INT_MIN, fits, pattern_parts
from tidings.filters.dialects.cesql.syntax import (
    ARITHMETIC,
    COMPARISON,
    LOGIC,
    Arithmetic,
    Compare,
    Constant,
    Exists,
    Function,
    In,
    Like,
    Logic,
    Minus,
    Name,
    Node,
    Not,
    unquote,
)
from tidings.filters.language.attributes import Attributes
from tidings.filters.language.expression import MAX_DEPTH
from tidings.filters.language.tokens import MAX_FOREIGN, check_length
from tidings.filters.values import like
from tidings.model import FilterError, LimitError

_TOKEN = re.compile(
    r"""
      (?P<space>   [ \t\r\n]+ )
    | (?P<word>    [A-Za-z0-9_]+ )
    | (?P<string>  '(?: [^'\\] | \\. )*' | "(?: [^"\\] | \\. )*" )
    | (?P<op>      <= | >= | <> | != | [=<>()+\-*/%,] )
    | (?P<bad>     . )
    """,
    re.VERBOSE | re.DOTALL,
)
_NAME = re.compile("[A-Za-z0-9]+")
_FUNCTION = re.compile("[A-Za-z][A-Za-z_]*")
_KEYWORDS = frozenset({"AND", "OR", "XOR", "NOT", "LIKE", "EXISTS", "IN", "TRUE", "FALSE"})
_COMPARISONS = {"=": "=", "!=": "!=", "<>": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_OPERAND = "an attribute, a value or a bracket"


class Token(NamedTuple):
    kind: str  # word, number, string, op, end
    text: str
    position: int
    word: str = ""  # the word in capitals


def read(
    text: str,
    attributes: Attributes | None = None,
    *,
    lenient: bool = False,
    most_parts: int = 1 << 62,
) -> Node:
    """Parse an expression; raise FilterError with a position if the text is not valid.

    A call to an unknown function is also refused. If `lenient` is true, such a call is accepted,
    and fails during evaluation, as in the specification.
    """
    return _Parser(text, attributes, lenient, most_parts).whole()


def tokenize(text: str) -> list[Token]:
    check_length(text, MAX_FOREIGN)
    tokens: list[Token] = []
    for found in _TOKEN.finditer(text):
        piece, at = found.group(), found.start()
        match found.lastgroup:
            case "word" if piece.isdigit():
                tokens.append(Token("number", piece, at))
            case "word":
                tokens.append(Token("word", piece, at, piece.upper()))
            case "string":
                tokens.append(Token("string", unquote(piece), at))
            case "op":
                tokens.append(Token("op", piece, at))
            case "bad":
                raise FilterError(_describe_bad_character(piece), text, at)
    tokens.append(Token("end", "", len(text)))
    return tokens


class _Parser:
    def __init__(
        self, text: str, attributes: Attributes | None, lenient: bool, most_parts: int
    ) -> None:
        self.left = most_parts
        self.text = text
        self.attributes = attributes
        self.lenient = lenient
        self.tokens = tokenize(text)
        self.at = 0
        self.depth = 0  # levels of brackets and prefixes around the current token
        self.height = 0  # levels of the node that was built last

    @property
    def now(self) -> Token:
        return self.tokens[self.at]

    def next(self) -> Token:
        token = self.tokens[self.at]
        self.at = min(self.at + 1, len(self.tokens) - 1)
        return token

    def fail(self, expected: str, token: Token | None = None) -> NoReturn:
        token = token or self.now
        raise FilterError(
            f"found {_describe(token)}, expected {expected}", self.text, token.position
        )

    def take(self, op: str, expected: str) -> None:
        if not self.take_op(op):
            self.fail(expected)

    def take_op(self, op: str) -> bool:
        found = self.now.kind == "op" and self.now.text == op
        if found:
            self.next()
        return found

    def take_word(self, *words: str) -> str:
        return self.next().word if self.now.kind == "word" and self.now.word in words else ""

    # -- expressions ---------------------------------------------------------------------------

    def whole(self) -> Node:
        if self.now.kind == "end":
            self.fail("a condition such as type = 'com.example'")
        node = self.expression(LOGIC)
        if self.now.kind != "end":
            self.fail("AND, OR, XOR or the end of the filter")
        return node

    def expression(self, least: int) -> Node:
        """Parse an expression whose binary operators bind at least this tightly."""
        self.depth += 1
        start = self.now
        if self.depth > MAX_DEPTH:
            self.too_deep(start)
        node = self.postfix(self.operand())
        height = self.height
        while True:
            strength = self.strength()
            if strength < least:
                break
            token = self.next()
            right = self.expression(strength + 1)
            chained = isinstance(node, Logic) and node.op == token.word
            node = self.join(node, token, right)
            height = max(height, self.height + 1) if chained else max(height, self.height) + 1
            if height > MAX_DEPTH:
                self.too_deep(start)
        self.depth -= 1
        self.height = height
        return node

    def too_deep(self, token: Token) -> NoReturn:
        raise FilterError(
            f"brackets and operators are nested more than {MAX_DEPTH} levels deep, expected fewer",
            self.text,
            token.position,
        )

    def strength(self) -> int:
        token = self.now
        if token.kind == "word":
            return LOGIC if token.word in ("AND", "OR", "XOR") else 0
        if token.kind != "op":
            return 0
        return COMPARISON if token.text in _COMPARISONS else ARITHMETIC.get(token.text, 0)

    def join(self, left: Node, token: Token, right: Node) -> Node:
        self.count(token)
        if token.kind == "word":
            op: Any = token.word
            return Logic(op, (*_links(left, op), *_links(right, op)))
        if token.text in _COMPARISONS:
            return Compare(_COMPARISONS[token.text], left, right)  # type: ignore[arg-type]
        return Arithmetic(token.text, left, right)

    def postfix(self, node: Node) -> Node:
        """Apply every LIKE and IN that follows the node."""
        while self.now.kind == "word" and self.now.word in ("LIKE", "IN", "NOT"):
            start, negated = self.now, bool(self.take_word("NOT"))
            height = self.height
            if self.take_word("LIKE"):
                if self.now.kind != "string":
                    self.fail("a pattern in quotes after LIKE")
                node = Like(node, self.pattern(self.next()))
            elif self.take_word("IN"):
                self.take("(", "an opening bracket after IN")
                if self.now == Token("op", ")", self.now.position):
                    self.fail("at least one value in the list of IN")
                node = In(node, self.read_list("the list of IN"))
            else:
                self.fail("LIKE or IN after NOT")
            node = Not(node) if negated else node
            self.height = max(height, self.height) + 1 + negated
            if self.height > MAX_DEPTH:
                self.too_deep(start)
        return node

    def pattern(self, token: Token) -> str:
        try:
            like.Like(pattern_parts(token.text))
        except like.LargeError as problem:
            raise LimitError(str(problem), self.text, token.position) from None
        return token.text

    def read_list(self, what: str) -> tuple[Node, ...]:
        """Parse expressions up to and including the closing bracket."""
        items: list[Node] = []
        height = 0
        while True:
            items.append(self.expression(LOGIC))
            height = max(height, self.height)
            if self.take_op(")"):
                self.height = height + 1
                return tuple(items)
            self.take(",", f"a comma or a closing bracket in {what}")

    # -- operands ------------------------------------------------------------------------------

    def operand(self) -> Node:
        self.height = 1
        token = self.next()
        match token.kind:
            case "number":
                return Constant(self.integer(token, ""))
            case "string":
                return Constant(token.text)
            case "op" if token.text in "+-" and self.sign_of_number(token):
                return Constant(self.integer(self.next(), token.text))
            case "op" if token.text == "-":
                return self.read_prefixed(token)
            case "op" if token.text == "(":
                node = self.expression(LOGIC)
                self.take(")", "AND, OR, XOR or a closing bracket")
                return node
            case "word":
                return self.name_or_call(token)
        self.fail(_OPERAND, token)

    def sign_of_number(self, token: Token) -> bool:
        return self.now.kind == "number" and self.now.position == token.position + 1

    def read_prefixed(self, token: Token) -> Node:
        """Parse the operand of NOT or minus; operators in it bind at least as tightly as the
        prefix."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.too_deep(token)
        node = self.operand()
        self.depth -= 1
        self.height += 1
        if token.text != "-":
            return Not(node)
        if isinstance(node, Constant) and type(node.value) is int and fits(-node.value):
            return Constant(-node.value)
        return Minus(node)

    def integer(self, token: Token, sign: str) -> int:
        digits = token.text.lstrip("0") or "0"
        value = int(sign + digits) if len(digits) <= len(str(INT_MAX)) else 2**32
        if not fits(value):
            raise FilterError(
                f"found {sign}{token.text[:40]}, expected {INT_MIN} to {INT_MAX}",
                self.text,
                token.position,
            )
        return value

    def name_or_call(self, token: Token) -> Node:
        """Parse a constant, NOT, EXISTS, a function call or an attribute."""
        if token.word in ("TRUE", "FALSE"):
            return Constant(token.word == "TRUE")
        if token.word == "NOT":
            return self.read_prefixed(token)
        if token.word == "EXISTS":
            if self.now.kind not in ("word", "number") or self.now.word in _KEYWORDS:
                self.fail("the name of an attribute after EXISTS")
            return Exists(self.name(self.next()))
        if token.word in _KEYWORDS:
            self.fail(_OPERAND, token)
        if self.take_op("("):
            return self.call(token)
        return Name(self.name(token))

    def name(self, token: Token) -> str:
        self.count(token)
        if not _NAME.fullmatch(token.text):
            self.fail("an attribute name of letters and digits", token)
        name = token.text.lower()
        problem = self.attributes.problem((name,)) if self.attributes else None
        if problem:
            raise FilterError(problem, self.text, token.position)
        return name

    def count(self, token: Token) -> None:
        self.left -= 1
        if self.left < 0:
            raise LimitError(
                "the filter has too many parts (attributes, comparisons and calls); use several "
                "filters",
                self.text,
                token.position,
            )

    def call(self, token: Token) -> Node:
        self.count(token)
        if not _FUNCTION.fullmatch(token.text):
            self.fail("a function name of letters and _", token)
        args = () if self.take_op(")") else self.read_list(f"the arguments of {token.text[:40]}")
        function = BUILTINS.get(token.word)
        if not self.lenient and function is None:
            raise FilterError(
                f"there is no function '{token.text[:40]}', expected one of "
                f"{', '.join(sorted(BUILTINS))}",
                self.text,
                token.position,
            )
        if not self.lenient and function is not None and not function.accepts(len(args)):
            least = f"{function.least}" if function.most == function.least else (
                f"{function.least} to {function.most}" if function.most
                else f"at least {function.least}"
            )  # fmt: skip
            raise FilterError(
                f"found {len(args)} arguments for {token.word}, expected {least}",
                self.text,
                token.position,
            )
        return Function(token.word, args)


def _links(node: Node, op: str) -> tuple[Node, ...]:
    """The items that a node adds to a chain; AND, OR and XOR are associative."""
    return node.items if isinstance(node, Logic) and node.op == op else (node,)


def _describe(token: Token) -> str:
    if token.kind == "end":
        return "the end of the filter"
    if token.kind == "string":
        return f"the string '{token.text[:40]}'"
    return f"'{token.text[:40]}'"


def _describe_bad_character(piece: str) -> str:
    if piece in "'\"":
        return f"found a {piece} that opens a string but no {piece} that closes it"
    shown = piece if piece.isprintable() else f"U+{ord(piece):04X}"
    return f"found the character {shown}, expected a name, a value or an operator"
