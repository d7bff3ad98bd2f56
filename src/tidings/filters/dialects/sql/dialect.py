"""The default dialect: conditions as in Spark's `df.filter("...")`.

This is a precedence parser. The levels, loosest first, are those of Spark's grammar:

    OR 1   AND 2   NOT 3   IS IN LIKE BETWEEN 4   = < > ... 5   + - || 6   * / % DIV 7   unary - 8

Two rules of Spark's grammar are easy to miss. A comparison binds tighter than IS, so `a = b IS
NULL` tests the comparison. And a condition with IS, IN, LIKE or BETWEEN must be in brackets if it
is the operand of a comparison.
"""

from __future__ import annotations

from typing import NoReturn

from tidings.filters.dialects.sql import fast_sql
from tidings.filters.language import builders
from tidings.filters.language.dialect import Context
from tidings.filters.language.expression import (
    COMPARISONS,
    MAX_DEPTH,
    And,
    Expression,
    IsNull,
    IsTruth,
    Literal,
    Not,
    Or,
)
from tidings.filters.language.sql_writer import RESERVED
from tidings.filters.language.tokens import MAX_LENGTH, Token, tokenize
from tidings.filters.values.casts import CAST_TYPES
from tidings.model import FilterError, Type

_OR, _AND, _NOT, _PREDICATE, _COMPARISON, _SUM, _PRODUCT, _UNARY = range(1, 9)

_ARITHMETIC = {"+": _SUM, "-": _SUM, "||": _SUM, "*": _PRODUCT, "/": _PRODUCT, "%": _PRODUCT}
_PREDICATES = frozenset({"IS", "IN", "LIKE", "ILIKE", "RLIKE", "REGEXP", "BETWEEN", "NOT"})
_STRENGTHS = {
    **dict.fromkeys(COMPARISONS, _COMPARISON),
    **_ARITHMETIC,
    **dict.fromkeys(_PREDICATES, _PREDICATE),
    "DIV": _PRODUCT,
    "AND": _AND,
    "OR": _OR,
}
_TYPED: dict[str, Type] = {"DATE": "date", "TIMESTAMP": "timestamp", "TIMESTAMP_NTZ": "timestamp",
          "TIMESTAMP_LTZ": "timestamp"}  # fmt: skip
_CONSTANTS = {"TRUE": True, "FALSE": False, "NULL": None}
# words that may follow a column named `case`; if any other word follows, CASE begins an expression
_AFTER_NAME = frozenset({*_STRENGTHS, "THEN", "ELSE", "END", "AS", "ESCAPE"})
_OPERAND = "an attribute, a value or a bracket"


def parse(text: str, context: Context) -> Expression:
    """Parse a condition; raise FilterError with a position if the text is not valid."""
    node = fast_sql.read(text, context)
    return node if node is not None else parse_fully(text, context)


def parse_fully(text: str, context: Context) -> Expression:
    """Parse a condition with the full grammar, without the fast path."""
    return _Parser(text, context).condition()


def parse_term(text: str, context: Context) -> Expression:
    """Parse a term, which need not be a condition; raise FilterError if the text is not valid."""
    return _Parser(text, context).whole()


class _Parser:
    def __init__(self, text: str, context: Context) -> None:
        self.text = text
        self.tokens = tokenize(text)
        self.tokens.append(self.tokens[-1])  # sentinel for one-token lookahead
        self.at = 0
        self.now = self.tokens[0]
        self.build = builders.Builder(text, context)
        self.depth = 0  # levels of brackets and prefixes around the current token
        self.height = 0  # levels of the expression that was built last
        # variable of an `exists` in the text -> its name in the expression
        self.scope: dict[str, str] = {}
        # each `any(list)` in the test that is being parsed
        self.open: list[tuple[str, Expression, int]] = []

    # -- tokens --------------------------------------------------------------------------------

    def next(self) -> Token:
        """Return the current token and move to the next one."""
        token = self.now
        self.at += 1
        self.now = self.tokens[self.at]
        return token

    def fail(self, expected: str, token: Token | None = None) -> NoReturn:
        token = token or self.now
        raise FilterError(
            f"found {_describe(token)}, expected {expected}", self.text, token.position
        )

    def take(self, op: str, expected: str) -> Token:
        if self.now.kind != "op" or self.now.text != op:
            self.fail(expected)
        return self.next()

    def take_op(self, op: str) -> bool:
        if self.now.text == op and self.now.kind == "op":
            self.next()
            return True
        return False

    def take_word(self, *words: str) -> bool:
        if self.now.word in words and self.now.kind == "name":
            self.next()
            return True
        return False

    # -- expressions ---------------------------------------------------------------------------

    def condition(self) -> Expression:
        if self.now.kind == "end":
            self.fail("a condition such as price > 90")
        start = self.now
        node = self.whole()
        self.build.need_condition(node, start.position)
        return node

    def whole(self) -> Expression:
        node = self.close(self.expression(_OR), 0)
        if self.now.kind != "end":
            self.fail("AND, OR or the end of the filter")
        return node

    def expression(self, least: int) -> Expression:
        """Parse an expression whose operators bind at least this tightly."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise FilterError(
                f"brackets and operators are nested more than {MAX_DEPTH} levels deep, expected "
                "fewer",
                self.text,
                self.now.position,
            )
        start, mark = self.now.position, len(self.open)
        node, tightest = self.operand(least)
        height = self.height
        while True:
            strength = self.strength()
            if strength < least or strength > tightest:
                break
            node = self.extend(node, strength, start, mark)
            if strength in (_COMPARISON, _PREDICATE):
                node = self.close(node, mark)
            height = max(height, self.height) + 1
            if height > MAX_DEPTH:
                raise FilterError(
                    f"operators are nested more than {MAX_DEPTH} levels deep, expected fewer",
                    self.text,
                    start,
                )
            if strength == _PREDICATE:
                tightest = _NOT
        self.depth -= 1
        self.height = height
        return node

    def strength(self) -> int:
        """How tightly the current token binds as an operator; 0 if it is not an operator."""
        token = self.now
        if token.kind == "op":
            return _STRENGTHS.get(token.text, 0)
        return _STRENGTHS.get(token.word, 0) if token.kind == "name" else 0

    def extend(self, left: Expression, strength: int, start: int, mark: int) -> Expression:
        token = self.now
        if strength in (_OR, _AND):
            return self.chain(left, strength, start, mark)
        if strength == _PREDICATE:
            return self.predicate(left, start)
        self.next()
        at = self.now.position
        right = self.expression(strength + 1)
        if strength == _COMPARISON:
            return self.build.compare(COMPARISONS[token.text], left, right, start, at)
        name = {"||": "concat"}.get(token.text, token.text or token.word).lower()
        return self.build.call(name, (left, right), (start, at), token.position)

    def close(self, node: Expression, mark: int) -> Expression:
        """Turn each `any(list)` in `self.open`, from position `mark` on, into an `exists` around
        its test.

        any(prices) > 5   ->   exists(prices, x -> x > 5)
        """
        while len(self.open) > mark:
            name, items, at = self.open.pop()
            node = self.build.some_element(items, name, node, at)
            self.height += 1
        return node

    def chain(self, left: Expression, strength: int, start: int, mark: int) -> Expression:
        """Parse all of `a AND b AND c` at once, so that a long chain is one flat node."""
        kind, word = (And, "AND") if strength == _AND else (Or, "OR")
        left = self.close(left, mark)
        self.build.need_condition(left, start)
        items: list[Expression] = list(left.items) if isinstance(left, kind) else [left]
        height = 0
        while self.take_word(word):
            at, inner = self.now.position, len(self.open)
            node = self.close(self.expression(strength + 1), inner)
            self.build.need_condition(node, at)
            height = max(height, self.height)
            if isinstance(node, kind):
                items.extend(node.items)
            else:
                items.append(node)
        self.height = height
        return kind(tuple(items))

    def predicate(self, item: Expression, start: int) -> Expression:
        negated = self.take_word("NOT")
        token = self.next()
        match token.word if token.kind == "name" else "":
            case "IS" if not negated:
                return self.is_test(item, start)
            case "IN":
                node: Expression = self.in_list(item, start)
            case "BETWEEN":
                node = self.between(item, start)
            case "LIKE" | "ILIKE":
                return self.like(item, token.word.lower(), start, negated)
            case "RLIKE" | "REGEXP":
                at = self.now.position
                pattern = self.expression(_COMPARISON)
                node = self.build.call("rlike", (item, pattern), (start, at), token.position)
            case _:
                self.fail("IN, LIKE, RLIKE or BETWEEN after NOT", token)
        return Not(node) if negated else node

    def is_test(self, item: Expression, start: int) -> Expression:
        negated = self.take_word("NOT")
        if self.take_word("NULL"):
            node: Expression = IsNull(item)
        elif self.take_word("UNKNOWN"):
            self.build.need_condition(item, start)
            node = IsNull(item)
        elif self.take_word("TRUE", "FALSE"):
            self.build.need_condition(item, start)
            node = IsTruth(item, self.tokens[self.at - 1].word == "TRUE")
        elif self.take_word("DISTINCT"):
            if not self.take_word("FROM"):
                self.fail("FROM after IS DISTINCT")
            at = self.now.position
            node = self.build.compare("<=>", item, self.expression(_COMPARISON), start, at)
            negated = not negated
        else:
            self.fail("NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM after IS")
        return Not(node) if negated else node

    def in_list(self, item: Expression, start: int) -> Expression:
        self.take("(", "an opening bracket after IN")
        if self.now.text == ")" and self.now.kind == "op":
            self.fail("at least one value in the list of IN")
        return self.build.is_in(item, self.arguments("the list of IN"), start)

    def between(self, item: Expression, start: int) -> Expression:
        low_at = self.now.position
        low = self.expression(_COMPARISON)
        height = self.height
        if not self.take_word("AND"):
            self.fail("AND between the two ends of BETWEEN")
        high_at = self.now.position
        high = self.expression(_COMPARISON)
        self.height = max(height, self.height)
        return self.build.between(item, low, high, (start, low_at, high_at))

    def like(self, item: Expression, name: str, start: int, negated: bool) -> Expression:
        size = self.tokens[self.at - 1].position - start
        follows = self.tokens[self.at + 1]
        if follows.text == "(" and self.take_word("ANY", "SOME", "ALL"):
            every = self.tokens[self.at - 1].word == "ALL"
            self.take("(", "an opening bracket after LIKE ANY or LIKE ALL")
            pairs = self.arguments("the list of LIKE")
            # each pattern becomes a separate test, which repeats the value
            if size * len(pairs) > MAX_LENGTH:
                raise FilterError(
                    f"LIKE would repeat a value of {size:,} characters for each of {len(pairs):,} "
                    "patterns; shorten the value or use several filters",
                    self.text,
                    start,
                )
            tests = tuple(
                self.build.like(name, item, pattern, None, (start, at)) for pattern, at in pairs
            )
            one_by_one = tuple(Not(test) for test in tests) if negated else tests
            if len(one_by_one) == 1:
                return one_by_one[0]
            return And(one_by_one) if every else Or(one_by_one)
        at = self.now.position
        pattern = self.expression(_COMPARISON)
        escape = None
        if self.take_word("ESCAPE"):
            if self.now.kind != "string" or len(self.now.text) != 1:
                self.fail("one character in quotes after ESCAPE")
            escape = self.next().text
        node = self.build.like(name, item, pattern, escape, (start, at))
        return Not(node) if negated else node

    # -- operands ------------------------------------------------------------------------------

    def operand(self, least: int) -> tuple[Expression, int]:
        """Parse an operand; also return the precedence of the tightest operator that may follow
        it."""
        self.height = 1
        token = self.now
        if token.kind == "op":
            return self.operand_of_sign(token, least)
        if token.kind == "name":
            if token.word == "NOT":
                return self.negation(least)
            return self.name_or_call(), _UNARY
        if token.kind == "number":
            self.next()
            return Literal(self.build.number(token)), _UNARY
        if token.kind == "string":
            return Literal(self.strings()), _UNARY
        if token.kind == "quoted":
            return self.attribute(), _UNARY
        self.fail(_OPERAND)

    def operand_of_sign(self, token: Token, least: int) -> tuple[Expression, int]:
        if token.text == "(":
            self.next()
            node = self.expression(_OR)
            self.take(")", "AND, OR or a closing bracket")
            return node, _UNARY
        if token.text == "!":
            return self.negation(least)
        if token.text in "+-":
            self.next()
            if token.text == "-" and self.now.kind == "number":
                return Literal(self.build.number(self.next(), negative=True)), _UNARY
            at = self.now.position
            node = self.expression(_UNARY)
            self.height += 1
            if token.text == "+":
                return node, _UNARY
            return self.build.call("negative", (node,), (at,), token.position), _UNARY
        self.fail(_OPERAND)

    def negation(self, least: int) -> tuple[Expression, int]:
        token = self.next()
        if least > _NOT:
            self.fail(f"{_OPERAND} ({token.text} needs brackets here)", token)
        at, mark = self.now.position, len(self.open)
        node = self.close(self.expression(_NOT), mark)
        self.build.need_condition(node, at)
        self.height += 1
        return Not(node), _AND

    def name_or_call(self) -> Expression:
        """Parse a constant, a typed literal, a function call or an attribute."""
        token = self.now
        follows = self.tokens[self.at + 1]
        if token.word in _TYPED and follows.kind == "string":
            self.next()
            return Literal(
                self.build.read_typed(self.strings(), _TYPED[token.word], token.position)
            )
        if token.word == "CASE" and self.is_case(follows):
            return self.case()
        if follows.kind == "op" and follows.text == "(":
            if token.word in ("EXISTS", "FORALL"):
                return self.quantifier()
            if token.word == "NAMED":
                return self.build_named()
            return self.any_of() if token.word == "ANY" else self.call()
        if token.word in _CONSTANTS:
            self.next()
            return Literal(_CONSTANTS[token.word])
        if token.word in RESERVED:
            self.fail(f"{_OPERAND} (to use it as a name, put it in backticks)")
        return self.attribute()

    def strings(self) -> str:
        """Parse a string, or several adjacent strings, which SQL joins into one."""
        text = self.next().text
        while self.now.kind == "string":
            text += self.next().text
        return text

    def attribute(self) -> Expression:
        start = self.now.position
        path = [self.next().text]
        indexes: list[tuple[Expression, int]] = []
        height = 0  # of the indexes
        while True:
            if self.take_op("."):
                if self.now.kind not in ("name", "quoted"):
                    self.fail("the name of a nested field after the dot")
                if indexes:  # `a[0].b` differs from `a.b[0]` if `a` is not a list
                    self.fail("the index last, such as lines.price[0] for lines[0].price")
                path.append(self.next().text)
            elif self.take_op("["):
                now, at = self.now, self.now.position
                if self.now.kind == "string" and not indexes:
                    path.append(self.strings() or self.fail("a nonempty name", now))
                else:
                    indexes.append((self.expression(_COMPARISON), at))
                    height = max(height, self.height)
                self.take("]", "a closing square bracket")
            else:
                break
            if len(path) + len(indexes) > MAX_DEPTH:
                raise FilterError(
                    f"found a name with more than {MAX_DEPTH} fields and indexes, expected at most "
                    f"{MAX_DEPTH}",
                    self.text,
                    start,
                )
        self.height = 1 + height + len(indexes)
        if path[0] in self.scope:
            name = self.scope[path[0]]
            node: Expression = self.build.variable(name, tuple(path[1:]), start)
        else:
            node = self.build.attribute(tuple(path), start)
        for index, at in indexes:
            node = self.build.call("get", (node, index), (start, at), at)
        return node

    def call(self) -> Expression:
        token = self.next()
        self.next()
        if token.word in ("CAST", "TRY_CAST"):
            return self.cast(token)
        empty = self.now.kind == "op" and self.now.text == ")"
        pairs = [] if empty else self.arguments(f"the arguments of {token.text}")
        if empty:
            self.next()
        args = tuple(arg for arg, _ in pairs)
        return self.build.function(token.text, args, tuple(at for _, at in pairs), token.position)

    def quantifier(self) -> Expression:
        """Parse `exists(list, x -> condition)` or `forall(list, x -> condition)`."""
        word = self.next()
        self.next()
        at = self.now.position
        items = self.expression(_OR)
        height = self.height
        self.take(",", f"a comma and a condition such as x -> x > 5 in {word.text}")
        if self.now.kind not in ("name", "quoted"):
            self.fail("a name for the elements, such as x in x -> x > 5")
        variable = self.next().text
        self.take("->", f"-> after {variable}")
        name = self.build.enter(items, at, variable)
        outer = self.scope
        self.scope = {**outer, variable: name}
        start, mark = self.now.position, len(self.open)
        body = self.close(self.expression(_OR), mark)
        self.build.need_condition(body, start)
        self.scope = outer
        self.take(")", f"a closing bracket after the condition of {word.text}")
        self.height = max(height, self.height) + 2
        if word.word == "EXISTS":
            return self.build.some_element(items, name, body, start)
        # a condition is true for all elements if it is false for none
        return Not(self.build.some_element(items, name, Not(body), start))

    def build_named(self) -> Expression:
        """Parse `named('late', condition)`: a condition with a name."""
        word = self.next()
        self.next()
        if self.scope:
            self.fail("named around the whole exists, because a named part tests the event", word)
        name_at = self.now.position
        name = self.expression(_OR)
        self.take(",", "a comma and a condition, as in named('late', delay > 60)")
        at, mark = self.now.position, len(self.open)
        condition = self.close(self.expression(_OR), mark)
        self.take(")", "AND, OR or a closing bracket after the condition of named")
        self.height += 1
        return self.build.build_named(name, condition, (name_at, at), word.position)

    def any_of(self) -> Expression:
        """Parse `any(list)`, which stands for some element of the list in the test around it."""
        self.next()
        self.next()
        at = self.now.position
        items = self.expression(_OR)
        self.take(")", "a closing bracket after the list of any")
        name = self.build.enter(items, at)
        self.open.append((name, items, at))
        self.height += 1
        return self.build.variable(name, (), at)

    @staticmethod
    def is_case(follows: Token) -> bool:
        """Whether the word CASE begins an expression, given the token after it; otherwise, CASE is
        a name."""
        if follows.kind == "op":
            return follows.text == "("
        return follows.kind != "end" and follows.word not in _AFTER_NAME

    def case(self) -> Expression:
        """Parse a CASE, either with conditions, as in `CASE WHEN a > 1 THEN b END`, or with values,
        as in `CASE a WHEN 1 THEN b END`."""
        start = self.next().position
        subject, subject_at, height = None, self.now.position, 0
        if self.now.word != "WHEN":
            subject = self.expression(_OR)
            height = self.height
        branches: list[tuple[Expression, Expression]] = []
        while self.take_word("WHEN"):
            at, mark = self.now.position, len(self.open)
            test = self.expression(_OR)
            height = max(height, self.height)
            if subject is not None:
                test = self.build.compare("=", subject, test, subject_at, at)
            test = self.close(test, mark)
            self.build.need_condition(test, at)
            if not self.take_word("THEN"):
                self.fail("THEN and a value")
            branches.append((test, self.expression(_OR)))
            height = max(height, self.height)
        if not branches:
            self.fail("WHEN and a condition")
        default: Expression = Literal(None)
        if self.take_word("ELSE"):
            default = self.expression(_OR)
            height = max(height, self.height)
        if not self.take_word("END"):
            self.fail("WHEN, ELSE or END of the CASE")
        self.height = height + 2
        return self.build.case(branches, default, start)

    def cast(self, token: Token) -> Expression:
        node = self.expression(_OR)
        if not self.take_word("AS"):
            self.fail("AS and the name of a type")
        kind = self.now.word.lower()
        if kind not in builders.TYPE_NAMES:
            names = ", ".join(sorted(name for name in CAST_TYPES))
            self.fail(f"the name of a type: {names}")
        self.next()
        self.take(")", "a closing bracket after the type")
        return self.build.cast(kind, (node,), token.position)

    def arguments(self, what: str) -> list[tuple[Expression, int]]:
        """Parse expressions up to and including the closing bracket; return their positions too."""
        pairs: list[tuple[Expression, int]] = []
        height = 0
        while True:
            at = self.now.position
            pairs.append((self.expression(_OR), at))
            height = max(height, self.height)
            if self.take_op(")"):
                self.height = height + 1
                return pairs
            if not self.take_op(","):
                self.fail(f"a comma or a closing bracket in {what}")


def _describe(token: Token) -> str:
    if token.kind == "end":
        return "the end of the filter"
    if token.kind == "string":
        return f"the string '{token.text[:40]}'"
    return f"'{token.text[:40]}'"
