"""Random schemas, notifications and filter texts: what the random tests draw from.

Everything comes from one `random.Random`, so a seed replays it. Values are few and pointed (end
points, nulls, NaN, both zeros, empty lists, code points around the surrogates, quotes and
wildcards), and texts draw their constants from the values of the notifications, so that tests
often fall exactly on an edge.

A *kind* is a type as the generator sees it. There are two kinds of integer: `integer` has the end
points of 64 bits and is only compared, `small` is -9 to 9 and may be computed with.
"""

from __future__ import annotations

import datetime as dt
import math
import random
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from tidings.filters import Attributes
from tidings.model import Type

INT_MIN, INT_MAX = -(2**63), 2**63 - 1
NAN, INF = math.nan, math.inf

Path = tuple[str, ...]

TYPES: dict[str, Type] = {
    "boolean": "boolean", "integer": "integer", "small": "integer", "double": "double",
    "string": "string", "date": "date", "timestamp": "timestamp", "strings": "list",
    "integers": "list", "doubles": "list",
}  # fmt: skip
ELEMENTS = {"strings": "string", "integers": "small", "doubles": "double"}
_NUMBERS = ("small", "double")
_TIMES = ("date", "timestamp")


def _utc(*parts: int) -> dt.datetime:
    return dt.datetime(*parts, tzinfo=dt.UTC)  # type: ignore[arg-type, misc]


STRINGS = (
    "", " ", "a", "A", "b", "ab", "aB", "abc", "abcd", "ba", "bab", " a ", "%", "_", "a_b", "a%b",
    "100%", "\\", "a\\b", "\\%", "'", '"', "it's", "`", "\n", "a\nb", "\t", "\0", "\x0012", "é",
    "É", "ß", "İ", "Σ", "ΑΣ", "ς", "\ud7ff", "\ue000", "\uffff", "\U00010000", "\U0010ffff",
    "a\U0010ffff", "a\U0010ffff\U0010ffff", "a\ud7ff", "a\ue000", "NaN", "null", "1", "2020-01-01",
)  # fmt: skip
VALUES: dict[str, tuple[Any, ...]] = {
    "boolean": (False, True),
    "integer": (0, 1, -1, 2, 5, 10, INT_MIN, INT_MIN + 1, INT_MAX, INT_MAX - 1, 2**53, 2**53 + 1,
                2**31 - 1, 2**31, -(2**31) - 1),
    "small": tuple(range(-9, 10)),
    "double": (0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 0.1, 0.2, 0.30000000000000004, 3.0, INF,
               -INF, NAN, NAN, 5e-324, 1.7976931348623157e308, 2.0**53, 2.0**53 + 2, 1e22, -1e-7,
               2.0**63),
    "string": STRINGS,
    "date": (dt.date(1, 1, 1), dt.date(1582, 10, 4), dt.date(1582, 10, 15), dt.date(1969, 12, 31),
             dt.date(1970, 1, 1), dt.date(2000, 2, 29), dt.date(2024, 2, 29),
             dt.date(2024, 12, 31), dt.date(9999, 12, 31)),
    "timestamp": (_utc(1, 1, 1), _utc(1969, 12, 31, 23, 59, 59, 999_999), _utc(1970, 1, 1),
                  _utc(1970, 1, 1, 0, 0, 0, 1), _utc(2000, 2, 29), _utc(2024, 2, 29, 12, 30, 15),
                  _utc(2024, 2, 29, 12, 30, 15, 500_000), _utc(2024, 12, 31, 23, 59, 59),
                  _utc(9999, 12, 31, 23, 59, 59, 999_999)),
}  # fmt: skip
# Numbers that no integer is equal to.
BEYOND = ("1e30", "-1e19", "-1e300", "double('NaN')", "double('-Infinity')")
# Patterns on which Java and Python agree for the strings above.
REGEXES = ("a", "^a", "b$", "a.c", "[a-c]+", r"\d", "a|b", "^(ab)*$", "^$", "x?", "%", r"\\",
           "[^a]", "^.$", "é|É", r"\s")  # fmt: skip
NAMES = ("price", "volume", "symbol", "Name", "at", "day", "seen", "tags", "scores", "n", "m", "k",
         "x", "y", "z", "_u", "u1", "odd name", "naïve", "a`b", "dot.ted", "like", "date",
         "any", "r", "1st", "city", "user", "geo", "lat", "count", "size")  # fmt: skip


class Column(NamedTuple):
    path: Path
    kind: str


class Schema(NamedTuple):
    columns: tuple[Column, ...]

    def of(self, kinds: Iterable[str]) -> list[Column]:
        wanted = set(kinds)
        return [column for column in self.columns if column.kind in wanted]

    def attributes(self) -> Attributes:
        """The declaration of these columns (none may have a dot in its name)."""
        return Attributes({".".join(c.path): TYPES[c.kind] for c in self.columns})


def schema(rng: random.Random, *, dotted: bool = True) -> Schema:
    """At least one column of each kind, some of them nested in structs of one or two levels."""
    names = [name for name in NAMES if dotted or "." not in name]
    rng.shuffle(names)
    kinds = list(TYPES) + rng.choices(list(TYPES), k=4)
    groups: list[Path] = [(), (), (), (names.pop(),)]
    groups.append((*groups[-1], names.pop()))
    return Schema(tuple(Column((*rng.choice(groups), names.pop()), kind) for kind in kinds))


def value(rng: random.Random, kind: str) -> Any:
    """A value that is not null."""
    if kind in ELEMENTS:
        size = rng.choice((0, 1, 1, 2, 2, 3))
        pool = VALUES[ELEMENTS[kind]]
        return [None if rng.random() < 0.15 else rng.choice(pool) for _ in range(size)]
    return rng.choice(VALUES[kind])


def event(rng: random.Random, of: Schema, null: float = 0.2) -> dict[str, Any]:
    """A notification; a null is there as None or is not there at all, a struct as well."""
    out: dict[str, Any] = {}
    gone = {path for c in of.columns for path in [c.path[:-1]] if path and rng.random() < 0.1}
    for path, kind in of.columns:
        if any(path[: len(prefix)] == prefix for prefix in gone):
            continue
        level = out
        for step in path[:-1]:
            level = level.setdefault(step, {})
        if rng.random() >= null:
            level[path[-1]] = value(rng, kind)
        elif rng.random() < 0.5:
            level[path[-1]] = None
    return out


# How tightly a text binds: an operand that binds less tightly than its place asks for gets
# brackets.
OR, AND, NOT, PREDICATE, COMPARISON, SUM, PRODUCT, UNARY, ATOM = range(1, 10)


class Text(NamedTuple):
    text: str
    binding: int
    size: float = math.inf  # for whole numbers: no larger than this


class Writer:
    """Writes conditions over a schema.

    `spark`: only what Spark SQL reads and values alike. Otherwise also the functions of this field,
    values of different families in one test, and numbers that overflow.
    `declared`: the columns are declared, so strings may stand for numbers and times.
    `zeros`: also divisions by nothing and places beyond the end of a list, which are errors in
    Spark unless its ANSI mode is off.
    """

    def __init__(
        self,
        rng: random.Random,
        of: Schema,
        *,
        spark: bool = True,
        declared: bool = False,
        zeros: bool = False,
    ) -> None:
        self.rng = rng
        self.schema = of
        self.spark = spark
        self.declared = declared
        self.zeros = zeros or not spark
        self.seen: list[Text] = []  # leaves to repeat

    # -- pieces --------------------------------------------------------------------------------

    def filter(self, depth: int = 3) -> str:
        """One filter."""
        self.seen = []
        return self.condition(self.rng.randint(0, depth)).text

    def word(self, word: str) -> str:
        return self.rng.choice((word, word, word, word.lower(), word.title()))

    def gap(self) -> str:
        roll = self.rng.random()
        if roll < 0.96:
            return " "
        return self.rng.choice(("  ", "\n", "\t", " /* a 'b' */ ", " -- c `d`\n", " /**/ "))

    def join(self, *pieces: str) -> str:
        out = pieces[0]
        for piece in pieces[1:]:
            out += self.gap() + piece
        return out

    def inside(self, part: Text, least: int) -> str:
        if part.binding >= least and self.rng.random() < 0.95:
            return part.text
        return f"({part.text})"

    def call(self, name: str, *args: str) -> str:
        name = self.rng.choice((name, name, name.upper()))
        return f"{name}({', '.join(args)})"

    # -- conditions ----------------------------------------------------------------------------

    def condition(self, depth: int) -> Text:
        rng = self.rng
        if depth <= 0:
            return self.leaf()
        roll = rng.random()
        if roll < 0.34:
            return self.chain("AND", AND, depth)
        if roll < 0.64:
            return self.chain("OR", OR, depth)
        if roll < 0.80:
            return self.negation(depth)
        if roll < 0.93:
            return self.of_conditions(depth)
        return self.leaf()

    def chain(self, word: str, strength: int, depth: int) -> Text:
        count = self.rng.choice((2, 2, 2, 3, 4))
        parts = [self.inside(self.condition(depth - 1), strength) for _ in range(count)]
        out = parts[0]
        for part in parts[1:]:
            out = self.join(out, self.word(word), part)
        return Text(out, strength)

    def negation(self, depth: int) -> Text:
        item = self.inside(self.condition(depth - 1), NOT)
        if self.rng.random() < 0.2:
            return Text("!" + self.rng.choice(("", " ")) + item, NOT)
        return Text(self.join(self.word("NOT"), item), NOT)

    def of_conditions(self, depth: int) -> Text:
        """Conditions as values: compared, asked whether they are true, looked for in a list."""
        rng = self.rng
        item = self.condition(depth - 1)
        roll = rng.random()
        if roll < 0.45:
            op = rng.choice(("=", "==", "!=", "<>", "<", "<=", ">", ">=", "<=>"))
            truths = ["true", "false", "NULL"]
            if rng.random() < 0.5:
                other = Text(rng.choice(truths), ATOM)
            else:
                other = self.condition(depth - 1)
            left, right = (item, other) if rng.random() < 0.8 else (other, item)
            # Left to right: `a = b = c` is `(a = b) = c`.
            return Text(
                self.join(self.inside(left, COMPARISON), op, self.inside(right, SUM)), COMPARISON
            )
        held = self.inside(item, COMPARISON)
        if roll < 0.75:
            what = rng.choice(("NULL", "TRUE", "FALSE", "UNKNOWN"))
            no = [self.word("NOT")] if rng.random() < 0.4 else []
            return Text(self.join(held, self.word("IS"), *no, self.word(what)), PREDICATE)
        if roll < 0.87:
            options = rng.choice(("true", "false", "true, false", "true, NULL", "NULL, false"))
            no = [self.word("NOT")] if rng.random() < 0.4 else []
            return Text(self.join(held, *no, self.word("IN"), f"({options})"), PREDICATE)
        ends = rng.choice(
            (("false", "true"), ("true", "true"), ("true", "false"), ("NULL", "true"))
        )
        between = self.join(self.word("BETWEEN"), ends[0], self.word("AND"), ends[1])
        return Text(self.join(held, between), PREDICATE)

    def leaf(self) -> Text:
        rng = self.rng
        if self.seen and rng.random() < 0.15:
            return rng.choice(self.seen)
        ways = [
            self.comparison, self.comparison, self.comparison, self.comparison, self.membership,
            self.membership, self.range, self.null_test, self.pattern, self.pattern,
            self.text_test, self.list_test, self.list_test, self.flag, self.distinct,
        ]  # fmt: skip
        if not self.spark:
            ways += [self.own, self.own, self.mixed]
        made = rng.choice(ways)()
        self.seen.append(made)
        return made

    def flag(self) -> Text:
        rng = self.rng
        roll = rng.random()
        if roll < 0.1:
            return Text(self.word(rng.choice(("TRUE", "FALSE", "NULL"))), ATOM)
        item = self.column("boolean")
        if roll < 0.55:
            return item
        what = rng.choice(("NULL", "TRUE", "FALSE", "UNKNOWN"))
        no = [self.word("NOT")] if rng.random() < 0.4 else []
        return Text(self.join(item.text, self.word("IS"), *no, self.word(what)), PREDICATE)

    def family(self) -> tuple[Callable[[int], Text], Callable[[], str]]:
        """Two ways to draw values that compare: something computed, and a constant."""
        rng = self.rng
        what = rng.choice(("number", "number", "integer", "string", "string", "time", "boolean"))
        if what == "number":
            return self.number, self.number_constant
        if what == "integer":
            return (lambda _: self.column("integer")), self.integer_constant
        if what == "string":
            return self.string, self.string_constant
        if what == "time":
            return self.time, self.time_constant
        return (lambda _: self.column("boolean")), lambda: rng.choice(("true", "false"))

    def comparison(self) -> Text:
        rng = self.rng
        value_of, constant = self.family()
        op = rng.choice(("=", "=", "==", "!=", "<>", "<", "<=", ">", ">=", "<=>"))
        left = value_of(rng.choice((0, 0, 0, 1, 2)))
        roll = rng.random()
        if roll < 0.06 and constant == self.integer_constant:
            number = self.declared and rng.random() < 0.5
            right = Text("'-7'" if number else rng.choice(BEYOND), UNARY)
        elif roll < 0.72:
            right = Text(constant(), UNARY)
        elif roll < 0.75:
            right = Text("NULL", ATOM)
        else:
            right = value_of(rng.choice((0, 0, 1)))
        if rng.random() < 0.15:
            left, right = right, left
        pieces = self.inside(left, SUM), op, self.inside(right, SUM)
        if rng.random() < 0.1:
            text = pieces[0] + op + (" " if pieces[2].startswith("-") else "") + pieces[2]
        else:
            text = self.join(*pieces)
        return Text(text, COMPARISON)

    def distinct(self) -> Text:
        value_of, constant = self.family()
        no = [self.word("NOT")] if self.rng.random() < 0.4 else []
        left = self.inside(value_of(0), SUM)
        right = constant() if self.rng.random() < 0.7 else self.inside(value_of(0), SUM)
        words = self.join(self.word("IS"), *no, self.word("DISTINCT"), self.word("FROM"))
        return Text(self.join(left, words, right), PREDICATE)

    def membership(self) -> Text:
        rng = self.rng
        value_of, constant = self.family()
        item = self.inside(value_of(rng.choice((0, 0, 1))), SUM)
        options = [constant() for _ in range(rng.choice((1, 2, 3, 3, 4, 6)))]
        if rng.random() < 0.2:
            options.insert(rng.randrange(len(options) + 1), self.word("NULL"))
        if rng.random() < 0.1:
            options.append(value_of(0).text)
        no = [self.word("NOT")] if rng.random() < 0.35 else []
        listed = self.join(*(f"{option}," for option in options[:-1]), options[-1])
        return Text(self.join(item, *no, self.word("IN"), f"({listed})"), PREDICATE)

    def range(self) -> Text:
        rng = self.rng
        value_of, constant = self.family()
        item = self.inside(value_of(rng.choice((0, 0, 1))), SUM)
        ends = [
            constant() if rng.random() < 0.85 else self.inside(value_of(0), SUM) for _ in range(2)
        ]
        if rng.random() < 0.05:
            ends[rng.randrange(2)] = "NULL"
        no = [self.word("NOT")] if rng.random() < 0.35 else []
        words = self.join(*no, self.word("BETWEEN"), ends[0], self.word("AND"), ends[1])
        return Text(self.join(item, words), PREDICATE)

    def null_test(self) -> Text:
        rng = self.rng
        roll = rng.random()
        if roll < 0.6:
            item = name(rng.choice(self.schema.columns).path)
        elif roll < 0.7:
            deep = [c.path for c in self.schema.columns if len(c.path) > 1]
            item = name(rng.choice(deep)[:-1]) if deep else self.column("string").text
        else:
            item = self.inside(self.family()[0](1), SUM)
        if rng.random() < 0.15:
            return Text(self.call(rng.choice(("isnull", "isnotnull")), item), ATOM)
        no = [self.word("NOT")] if rng.random() < 0.5 else []
        return Text(self.join(item, self.word("IS"), *no, self.word("NULL")), PREDICATE)

    def pattern(self) -> Text:
        rng = self.rng
        item = self.inside(self.string(rng.choice((0, 0, 1))), SUM)
        no = [self.word("NOT")] if rng.random() < 0.35 else []
        roll = rng.random()
        if roll < 0.2:
            # `$` is before a last line feed too, in Java; see spark_differences.json
            choices = [one for one in REGEXES if "$" not in one] if self.spark else REGEXES
            pattern = quoted(rng, rng.choice(choices), escape_wildcards=True)
            word = self.word(rng.choice(("RLIKE", "REGEXP")))
            return Text(self.join(item, *no, word, pattern), PREDICATE)
        word = self.word(rng.choice(("LIKE",) if _changes_case(item) else ("LIKE", "ILIKE")))
        if roll < 0.4:
            many = self.word(rng.choice(("ANY", "SOME", "ALL")))
            patterns = [self.like_pattern() for _ in range(rng.choice((1, 2, 2, 3)))]
            if rng.random() < 0.1:
                patterns.append("NULL")
            listed = f"({', '.join(patterns)})"
            return Text(self.join(item, *no, word, many, listed), PREDICATE)
        if roll < 0.5:
            escape = rng.choice("!#a%_\\")
            pattern = quoted(rng, like_pattern(rng, escape), escape_wildcards=True)
            ending = self.join(self.word("ESCAPE"), quoted(rng, escape, escape_wildcards=True))
            return Text(self.join(item, *no, word, pattern, ending), PREDICATE)
        if roll < 0.55:
            return Text(self.call(word, item, self.like_pattern()), ATOM)
        return Text(self.join(item, *no, word, self.like_pattern()), PREDICATE)

    def like_pattern(self) -> str:
        return quoted(self.rng, like_pattern(self.rng), escape_wildcards=True)

    def text_test(self) -> Text:
        rng = self.rng
        function = rng.choice(("startswith", "endswith", "contains"))
        item = self.string(rng.choice((0, 0, 1))).text
        part = rng.choice(STRINGS)[: rng.choice((1, 2, 5))]
        wanted = quoted(rng, part) if rng.random() < 0.85 else self.string(0).text
        return Text(self.call(function, item, wanted), ATOM)

    def list_test(self) -> Text:
        rng = self.rng
        kind = rng.choice(tuple(ELEMENTS))
        item = self.column(kind)
        roll = rng.random()
        if roll < 0.4:
            wanted = self.element(kind)
            if rng.random() < 0.2:
                wanted = self.column(ELEMENTS[kind]).text
            return Text(self.call("array_contains", item.text, wanted), ATOM)
        if roll < 0.65:
            many = self.array(kind) if rng.random() < 0.8 else self.column(kind).text
            pair = [item.text, many]
            rng.shuffle(pair)
            return Text(self.call("arrays_overlap", *pair), ATOM)
        if roll < 0.8:
            op = rng.choice(("=", "!=", "<", ">=", "<=>"))
            right = self.array(kind) if rng.random() < 0.8 else self.column(kind).text
            return Text(self.join(item.text, op, right), COMPARISON)
        op = rng.choice(("=", "!=", "<", ">=", "<=>"))
        return Text(self.join(self.got(kind), op, self.element(kind)), COMPARISON)

    def got(self, kind: str) -> str:
        """An element by its place."""
        rng = self.rng
        item = self.column(kind).text
        if self.zeros and rng.random() < 0.5:
            return f"{item}[{rng.choice((0, 1, 2, 7))}]"
        if rng.random() < 0.2:
            item = self.call("reverse", item)
        return self.call("get", item, str(rng.choice((0, 0, 1, 2, 7, -1))))

    def element(self, kind: str) -> str:
        if kind == "strings":
            return self.string_constant()
        if kind == "integers":
            return str(self.rng.randint(-9, 9))
        return self.double_literal()

    def array(self, kind: str) -> str:
        rng = self.rng
        items = [self.element(kind) for _ in range(rng.choice((1, 1, 2, 3)))]
        if rng.random() < 0.15:
            items.append("NULL")
        return self.call("array", *items)

    # -- values --------------------------------------------------------------------------------

    def column(self, *kinds: str) -> Text:
        return Text(name(self.rng.choice(self.schema.of(kinds)).path), ATOM)

    def number(self, depth: int) -> Text:
        if self.rng.random() < 0.5:
            return self.double(depth)
        return self.whole(depth)

    def number_constant(self) -> str:
        rng = self.rng
        if self.declared and rng.random() < 0.06:
            return quoted(rng, rng.choice(("1", "-2", " 3 ")))
        if rng.random() < 0.4:
            return str(rng.randint(-9, 9))
        return rng.choice((self.double_literal, self.decimal_literal))()

    def decimal_literal(self) -> str:
        """A decimal to Spark, a double to us: alike as long as nothing is computed from it."""
        return self.rng.choice(("0.5", "-1.5", "2.50", ".1", "0.2", "3.", "-0.0", "1.0BD", "7.25"))

    def double_literal(self) -> str:
        rng = self.rng
        number = rng.choice(VALUES["double"])
        if math.isnan(number):
            return rng.choice(("double('NaN')", "CAST('NaN' AS DOUBLE)", "float('nan')"))
        if math.isinf(number):
            return "double('Infinity')" if number > 0 else "double('-Infinity')"
        if rng.random() < 0.1:
            return rng.choice(("1.5F", "0.25f", "-2F"))
        text = repr(number)
        if "e" in text and rng.random() < 0.5:
            return text
        return text + rng.choice("Dd")

    def integer_constant(self) -> str:
        rng = self.rng
        roll = rng.random()
        if roll < 0.2:
            return self.decimal_literal()
        text = str(rng.choice(VALUES["integer"]))
        if roll < 0.3:
            return text + rng.choice("Ll")
        return text

    def whole(self, depth: int) -> Text:
        """Whole numbers: computed ones keep within 32 bits, where Spark's literals live."""
        rng = self.rng
        if depth <= 0:
            roll = rng.random()
            if roll < 0.5:
                return self.column("small")._replace(size=9)
            if roll < 0.62:
                return Text(self.call("length", self.string(0).text), ATOM, 10)
            if roll < 0.74:
                return Text(self.call("size", self.column(*ELEMENTS).text), ATOM, 3)
            if roll < 0.92:
                part = ("year", "month", "day", "hour", "minute", "second", "dayofweek")
                return Text(self.call(rng.choice(part), self.column(*_TIMES).text), ATOM, 9999)
            return Text(str(rng.randint(0, 9)), ATOM, 9)
        left = self.whole(depth - 1)
        roll = rng.random()
        if roll < 0.15:
            return Text(self.call("abs", left.text), ATOM, left.size)
        if roll < 0.25:
            minus = "- " if left.text.startswith("-") else "-"
            return Text(minus + self.inside(left, UNARY), UNARY, left.size)
        if roll < 0.35:
            divided = self.join(self.inside(left, PRODUCT), "/", str(rng.choice((2, 3, -4))))
            name_ = rng.choice(("floor", "ceil", "ceiling"))
            return Text(self.call(name_, divided), ATOM, left.size + 1)
        if roll < 0.5:
            right = str(rng.choice((2, 3, 7, -3)))
            if self.zeros and rng.random() < 0.4:
                right = rng.choice(("0", self.column("small").text))
            if rng.random() < 0.1:
                return Text(self.call("mod", left.text, right), ATOM, left.size)
            op = self.word(rng.choice(("%", "DIV")))
            return Text(self.join(self.inside(left, PRODUCT), op, right), PRODUCT, left.size)
        right_side = self.whole(depth - 1)
        if roll < 0.7 and left.size * right_side.size < 2**31:
            text = self.join(self.inside(left, PRODUCT), "*", self.inside(right_side, UNARY))
            return Text(text, PRODUCT, left.size * right_side.size)
        op = rng.choice("+-")
        text = self.join(self.inside(left, SUM), op, self.inside(right_side, PRODUCT))
        return Text(text, SUM, left.size + right_side.size)

    def double(self, depth: int) -> Text:
        rng = self.rng
        if depth <= 0:
            return self.column("double")
        left = self.double(depth - 1)
        roll = rng.random()
        if roll < 0.12:
            return Text(self.call("abs", left.text), ATOM)
        if roll < 0.22:
            minus = "- " if left.text.startswith("-") else "-"
            return Text(minus + self.inside(left, UNARY), UNARY)
        if roll < 0.32:
            return Text(self.call("coalesce", left.text, self.double_literal()), ATOM)
        if roll < 0.5:
            right = rng.choice(("2", "0.5D", "-3", "1e-300", "double('Infinity')", "7"))
            if self.zeros and rng.random() < 0.4:
                right = rng.choice(("0", "0.0D", self.column("small").text))
            op = rng.choice("/%")
            return Text(self.join(self.inside(left, PRODUCT), op, right), PRODUCT)
        kinds = rng.choice((self.double, self.whole))
        other = Text(self.double_literal(), UNARY) if rng.random() < 0.4 else kinds(depth - 1)
        op = rng.choice("+-*")
        binding = PRODUCT if op == "*" else SUM
        text = self.join(self.inside(left, binding), op, self.inside(other, binding + 1))
        return Text(text, binding)

    def string(self, depth: int) -> Text:
        rng = self.rng
        if depth <= 0:
            return self.column("string")
        item = self.string(depth - 1)
        roll = rng.random()
        if roll < 0.5:
            names = ["trim", "reverse"]
            if not _changes_case(item.text):
                names += ["lower", "upper", "lcase", "ucase"]
            return Text(self.call(rng.choice(names), item.text), ATOM)
        if roll < 0.65:
            spot = str(rng.choice((-3, -1, 0, 1, 2, 9)))
            size = [str(rng.choice((0, 1, 2, 5, -1)))] if rng.random() < 0.7 else []
            return Text(
                self.call(rng.choice(("substring", "substr")), item.text, spot, *size), ATOM
            )
        if roll < 0.75:
            return Text(self.call("coalesce", item.text, self.string_constant()), ATOM)
        if roll < 0.82:
            return Text(self.got("strings"), ATOM)
        other = self.string(0).text if rng.random() < 0.5 else self.string_constant()
        if roll < 0.92:
            return Text(self.call("concat", item.text, other), ATOM)
        return Text(self.join(self.inside(item, SUM), "||", other), SUM)

    def string_constant(self) -> str:
        return quoted(self.rng, self.rng.choice(STRINGS))

    def time(self, depth: int) -> Text:
        if depth <= 0 or self.rng.random() < 0.5:
            return self.column(*_TIMES)
        kind = self.rng.choice(_TIMES)
        item, other = self.column(kind).text, self.time_literal(kind)
        return Text(self.call("coalesce", item, other), ATOM)

    def time_constant(self) -> str:
        rng = self.rng
        if self.declared and rng.random() < 0.1:
            return rng.choice(("'2024-02-29'", "'1970-01-01'"))
        return self.time_literal(rng.choice(_TIMES))

    def time_literal(self, kind: str) -> str:
        rng = self.rng
        moment = rng.choice(VALUES[kind])
        if kind == "date":
            text = moment.isoformat()
            return rng.choice((f"DATE '{text}'", f"date'{text}'", f"to_date('{text}')",
                               f"CAST('{text}' AS DATE)", f"date('{text}')"))  # fmt: skip
        text = moment.replace(tzinfo=None).isoformat(sep=rng.choice(" T"))
        text += rng.choice(("", "", "Z", "+00:00"))
        return rng.choice((f"TIMESTAMP '{text}'", f"timestamp \"{text}\"", f"timestamp('{text}')",
                           f"to_timestamp('{text}')", f"CAST('{text}' AS TIMESTAMP)"))  # fmt: skip

    # -- what only we have ---------------------------------------------------------------------

    def own(self) -> Text:
        rng = self.rng
        roll = rng.random()
        if roll < 0.3:
            fields = rng.choices(("a", "b", "ab", "*"), k=rng.choice((1, 2, 3)))
            if rng.random() < 0.3:
                fields.append(">")
            return Text(f"subject('{'.'.join(fields)}')", ATOM)
        if roll < 0.5:
            topic = rng.choice(("a", "ab", "a.b", "abc"))
            return Text(f"isa({self.column('string').text}, '{topic}')", ATOM)
        if roll < 0.65:
            net = rng.choice(("10.0.0.0/8", "10.1.2.3", "::/0", "0.0.0.0/0", "2001:db8::/32"))
            return Text(f"cidr({self.column('string').text}, '{net}')", ATOM)
        lat, lon = self.column(*_NUMBERS).text, self.column(*_NUMBERS).text
        if roll < 0.8:
            west, east = rng.choice(((-5, 5), (170, -170), (0.5, 0.5)))
            return Text(f"within_box({lat}, {lon}, -10, {west}, 10.5, {east})", ATOM)
        km = rng.choice((0, 100, 5000, 20000))
        return Text(f"within_km({lat}, {lon}, {rng.choice((0, 45, -90))}, 1, {km})", ATOM)

    def mixed(self) -> Text:
        """Values of different families in one test."""
        rng = self.rng
        item = name(rng.choice(self.schema.columns).path)
        constants = [self.family()[1]() for _ in range(2)]
        roll = rng.random()
        if roll < 0.4:
            op = rng.choice(("=", "!=", "<", ">=", "<=>"))
            return Text(self.join(item, op, constants[0]), COMPARISON)
        if roll < 0.6:
            return Text(self.join(item, "IN", f"({constants[0]}, {constants[1]})"), PREDICATE)
        if roll < 0.8:
            words = self.join(constants[0], "AND", constants[1])
            return Text(self.join(item, "BETWEEN", words), PREDICATE)
        other = name(rng.choice(self.schema.columns).path)
        op = rng.choice(("=", "<=>", "+ 9223372036854775807 >", "* 1e308 <", "% 0 =", "/ 0 ="))
        return Text(self.join(item, op, other), COMPARISON)


def name(path: Path) -> str:
    """A path as text, in backticks where that is needed."""
    from tidings.filters.language.sql_writer import name_text

    return name_text(path)


def _changes_case(text: str) -> bool:
    """Whether a value is put in lower or upper case: twice is once to Spark, even for ß."""
    return any(name_ in text.lower() for name_ in ("lower(", "upper(", "case("))


def like_pattern(rng: random.Random, escape: str = "\\") -> str:
    """A valid pattern: pieces of the strings, wildcards, escaped wildcards."""
    pieces = []
    for _ in range(rng.choice((0, 1, 1, 2, 2, 3, 4))):
        roll = rng.random()
        if roll < 0.25:
            pieces.append("%")
        elif roll < 0.4:
            pieces.append("_")
        elif roll < 0.5:
            pieces.append(escape + rng.choice(("%", "_", escape)))
        else:
            text = rng.choice(STRINGS)
            for special in (escape, "%", "_"):
                if special in text.lower():  # ILIKE puts the pattern in lower case first
                    text = "a"
            if escape not in text:
                pieces.append(text)
    pattern = "".join(pieces)
    if escape in "%_":  # the escape wins over the wildcard, so a lone one would be an error
        halves = pattern.replace(escape * 2, "\x01")
        for follower in "%_":
            if follower != escape:
                halves = halves.replace(escape + follower, "\x02")
        pattern = halves.replace(escape, "").replace("\x01", escape * 2)
        pattern = pattern.replace("\x02", escape + ("_" if escape == "%" else "%"))
    return pattern


def quoted(rng: random.Random, text: str, *, escape_wildcards: bool = False) -> str:
    """A string literal with this value, in one of the ways to write it.

    In a string `\\%` and `\\_` keep their backslash, so a backslash of the value is always doubled.
    """
    quote = rng.choice("'''\"")
    if "\\" in text and rng.random() < 0.2 and quote not in text and escape_wildcards:
        return rng.choice("rR") + quote + text + quote
    out = []
    for char in text:
        if char == "\\":
            out.append("\\\\")
        elif char == quote:
            out.append(rng.choice(("\\" + quote, quote + quote)))
        elif char == "\n":
            out.append(rng.choice(("\\n", "\n", "\\u000A", "\\012")))
        elif char == "\0":
            out.append(rng.choice(("\\u0000", "\\000")))
        elif rng.random() < 0.05:
            code = ord(char)
            out.append(f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}")
        else:
            out.append(char)
    literal = quote + "".join(out) + quote
    if len(text) > 1 and rng.random() < 0.05:  # two side by side are one
        return f"{quote}{quote} {literal}"
    return literal
