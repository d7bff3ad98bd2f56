"""Checked construction of expressions: parsers call a method here for each construct they read.

All checks are here, and each refusal is one sentence with a position. The builder refuses unknown
attributes and functions, arguments of the wrong type, comparisons of types that can't be compared,
and patterns that do not compile. Constants are folded: `60 * 60` becomes 3600.
"""

from __future__ import annotations

import datetime as dt
import difflib
import math
from decimal import Decimal
from typing import Any, NoReturn

from tidings.filters.language.attributes import Attributes, family
from tidings.filters.language.dialect import Context, SqlFunction, sql_functions
from tidings.filters.language.evaluation import variable_key
from tidings.filters.language.expression import (
    CONDITIONS,
    Attribute,
    Between,
    Call,
    Case,
    Compare,
    Expression,
    In,
    IsNull,
    Literal,
    Not,
    Variable,
    is_absent,
    make_exists,
)
from tidings.filters.language.folding import fold_constants
from tidings.filters.language.functions import ALIASES, FUNCTIONS, OPERATORS
from tidings.filters.language.sql_writer import name_text, text_of
from tidings.filters.language.static_types import static_type_of
from tidings.filters.language.tokens import Token
from tidings.filters.values import inet, like, regular, subjects
from tidings.filters.values.casts import (
    CAST_NAMES,
    CAST_TYPES,
    can_cast,
    is_same,
    round_to_single,
)
from tidings.model import (
    INT_MAX,
    DataType,
    FilterError,
    LimitError,
    LongDecimal,
    Type,
    article,
    count_digits,
    is_number,
    normalise,
    read_value,
    type_of,
)

TYPE_NAMES = frozenset(CAST_NAMES) - {"to_date", "to_timestamp"}
# `byte`, `short` and `real` are types in CAST, but not functions
_CASTS = frozenset(CAST_NAMES) - {"byte", "short", "real", "timestamp_ltz"}
_PRIVATE = frozenset({"apply", "cast", "foreign", "subject_matches", "negative"}) | OPERATORS
_SPECIAL = frozenset({"subject", "isa", "preorder", "cidr", "within_box", "within_km", "array",
                      "isnull", "isnotnull", "isabsent", "like", "ilike", "if"})  # fmt: skip


class _ScopedTypes:
    """The types of the attributes, and of the variables that stand for elements of lists."""

    def __init__(self, attributes: Attributes | None) -> None:
        self.attributes = attributes
        self.variables: dict[str, DataType | None] = {}

    def type(self, path: tuple[str, ...]) -> str | None:
        if path[0] not in self.variables:
            return None if self.attributes is None else self.attributes.type(path)
        found = self.data_type(path)
        return None if found is None else found.kind

    def data_type(self, path: tuple[str, ...]) -> DataType | None:
        if path[0] not in self.variables:
            return None if self.attributes is None else self.attributes.data_type(path)
        found = self.variables[path[0]]
        for step in path[1:]:
            found = None if found is None else found.step(step)
        return found


def _element_type(items: Expression, types: _ScopedTypes) -> DataType | None:
    """The type of the elements of a list; None if it is not known."""
    if isinstance(items, Attribute):
        found = types.data_type(items.path)
    elif isinstance(items, Variable):
        found = types.data_type((variable_key(items.name), *items.path))
    else:
        return None
    return found.element if found is not None and found.kind == "list" else None


class Builder:
    """Builds expressions for one text in one context."""

    def __init__(self, text: str, context: Context) -> None:
        self.text = text
        self.attributes = context.attributes
        self.functions = context.functions
        self._context = context
        self._types = _ScopedTypes(context.attributes)
        self._shown: dict[str, str] = {}  # for each variable, the name that messages use
        self._parts = 0

    def count(self, at: int, parts: int = 1) -> None:
        """Count parts of the filter; raise LimitError if there are too many."""
        self._parts += parts
        if self._parts > self._context.most_parts:
            self.exceed(
                f"the filter has more than {self._context.most_parts:,} parts (attributes, "
                "comparisons and calls); use several filters",
                at,
            )

    def fail(self, reason: str, position: int) -> NoReturn:
        for name, shown in self._shown.items():
            reason = reason.replace(name_text((name,)), shown)
        raise FilterError(reason, self.text, position)

    def exceed(self, reason: str, position: int) -> NoReturn:
        """Refuse a valid filter that exceeds a limit."""
        raise LimitError(reason, self.text, position)

    # -- leaves --------------------------------------------------------------------------------

    def attribute(self, path: tuple[str, ...], at: int) -> Attribute:
        self.count(at)
        problem = self.attributes.problem(path) if self.attributes else None
        if problem:
            self.fail(problem, at)
        return Attribute(path)

    def number(self, token: Token, negative: bool = False) -> Any:
        """The number in a token: an integer, a double or, if it has no exponent and more digits
        than a double, a LongDecimal."""
        sign = "-" if negative else ""
        if token.word in _BITS:
            return self._read_whole(sign, token)
        if token.text.isdigit() and not token.word and abs(int(token.text)) <= INT_MAX + negative:
            return int(sign + token.text)
        value = float(sign + token.text)
        if math.isinf(value):
            self.fail(f"found {token.text[:40]}, which exceeds the largest double", token.position)
        if token.word == "BD" or not (token.word or "E" in token.text.upper()):
            exact = normalise(Decimal(sign + token.text))
            # a whole number with a decimal point is a double if a double can represent it exactly
            return exact if isinstance(exact, LongDecimal) or exact != value else value
        return round_to_single(value) if token.word == "F" else value

    def _read_whole(self, sign: str, token: Token) -> int:
        """Read a number that has one of SQL's integer suffixes."""
        shown = f"{sign}{token.text}{token.word}"
        if not token.text.isdigit():
            self.fail(f"found {shown}, expected a whole number before {token.word}", token.position)
        whole, bits = int(sign + token.text), _BITS[token.word]
        if not -(2 ** (bits - 1)) <= whole < 2 ** (bits - 1):
            self.fail(f"found {shown}, which does not fit in {bits} bits", token.position)
        return whole

    def read_typed(self, word: str, kind: Type, at: int) -> Any:
        try:
            return read_value(word, kind)
        except ValueError as problem:
            self.fail(f"{problem}, expected {article(kind)}", at)

    # -- types ---------------------------------------------------------------------------------

    def type(self, node: Expression) -> str | None:
        """The type of an expression; None if it depends on the notification."""
        return static_type_of(node, self._types)

    def need_condition(self, node: Expression, at: int) -> None:
        if isinstance(node, Literal) and node.value is None:
            return
        kind = self.type(node)
        if kind not in (None, "boolean"):
            self.fail(
                f"found {_describe(node)}, {article(kind)}, expected a condition such as x > 5", at
            )

    def need_value(self, node: Expression, at: int, where: str) -> None:
        if isinstance(node, CONDITIONS):
            self.fail(f"found a condition, expected a value {where}", at)

    # -- conditions ----------------------------------------------------------------------------

    def compare(
        self, op: str, left: Expression, right: Expression, left_at: int, right_at: int
    ) -> Expression:
        self.count(right_at)
        left, right = self._make_comparable(left, right, left_at, right_at)
        return Compare(op, left, right)  # type: ignore[arg-type]

    def _make_comparable(
        self, left: Expression, right: Expression, left_at: int, right_at: int
    ) -> tuple[Expression, Expression]:
        """Return both sides; a string literal is converted to the type of the other side."""
        a, b = self.type(left), self.type(right)
        left, right = _settle(left, b), _settle(right, a)
        if a is None or b is None or family(a) == family(b):
            return left, right
        if b == "string" and isinstance(right, Literal):
            return left, self._read_as(right, a, left, right_at)
        if a == "string" and isinstance(left, Literal):
            return self._read_as(left, b, right, left_at), right
        self.fail(
            f"{_describe(left)} is {article(a)} and can't be compared with {_describe(right)}, "
            f"{article(b)}",
            right_at,
        )

    def _read_as(self, node: Literal, kind: str, other: Expression, at: int) -> Literal:
        try:
            return Literal(read_value(node.value, "double" if kind == "number" else kind))  # type: ignore[arg-type]
        except ValueError:
            self.fail(
                f"{_describe(other)} is {article(kind)} and can't be compared with "
                f"{text_of(node)[:60]}; expected {article(kind)}",
                at,
            )

    def is_in(
        self, item: Expression, pairs: list[tuple[Expression, int]], start: int
    ) -> Expression:
        kind = self.type(item)
        if kind is None or all(self.type(option) in (None, kind) for option, _ in pairs):
            return In(item, tuple(_settle(option, kind) for option, _ in pairs))
        options = []
        for option, at in pairs:
            item, option = self._make_comparable(item, option, start, at)
            options.append(option)
        return In(item, tuple(options))

    def between(
        self, item: Expression, low: Expression, high: Expression, at: tuple[int, int, int]
    ) -> Expression:
        item, low = self._make_comparable(item, low, at[0], at[1])
        item, high = self._make_comparable(item, high, at[0], at[2])
        return Between(item, low, high)

    def like(
        self, name: str, item: Expression, pattern: Expression, escape: str | None,
        at: tuple[int, int],
    ) -> Expression:  # fmt: skip
        if isinstance(pattern, Literal) and isinstance(pattern.value, str):
            # ILIKE is LIKE in lower case; Spark lowercases the pattern before it looks for escapes
            text = pattern.value.lower() if name == "ilike" and escape else pattern.value
            try:
                pattern = Literal(like.join(like.split(text, escape or "\\")))
            except like.PatternError as problem:
                self.fail(f"{problem}, expected %, _ or another escape character after it", at[1])
        elif escape is not None:
            self.fail(f"found {_describe(pattern)}, expected a quoted pattern before ESCAPE", at[1])
        return self.call(name, (item, pattern), at, at[0])

    # -- functions -----------------------------------------------------------------------------

    def call(
        self, name: str, args: tuple[Expression, ...], places: tuple[int, ...], at: int
    ) -> Expression:
        """Build a checked call of a built-in function; a constant call becomes its value."""
        self.count(at)
        function = FUNCTIONS[name]
        if not function.least <= len(args) <= function.most:
            self.fail(
                f"{name} takes {_describe_count(function.least, function.most)}, not {len(args)}",
                at,
            )
        for place, (arg, where) in enumerate(zip(args, places, strict=True)):
            self.need_value(arg, where, f"for {name}")
            wanted = function.takes[place] if place < len(function.takes) else None
            kind = family(self.type(arg))
            if wanted and kind and kind != wanted:
                found = f"{_describe(arg)}, {article(self.type(arg) or '')}"
                self.fail(f"{name} takes {article(wanted)} here, found {found}", where)
        if name in ("like", "ilike") and isinstance(args[1], Literal):
            self._check_like(args[1], places[1])
        if name == "rlike":
            self._check_regular(args[1], places[1])
        return fold_constants(Call(name, args))

    def _check_like(self, pattern: Literal, at: int) -> None:
        if isinstance(pattern.value, str):
            try:
                like.Like(like.split(pattern.value))
            except like.PatternError as problem:
                self.fail(f"{problem}, expected %, _ or another escape character after it", at)
            except like.LargeError as problem:
                self.exceed(str(problem), at)

    def _check_regular(self, pattern: Expression, at: int) -> None:
        if not isinstance(pattern, Literal):
            self.exceed(
                f"RLIKE takes a pattern in quotes, found {_describe(pattern)}; only LIKE and "
                "contains can take the pattern from an attribute",
                at,
            )
        if isinstance(pattern.value, str):
            try:
                compiled = regular.compile_pattern(pattern.value)
                self.count(at, compiled.size // 64)
            except regular.RegularError as problem:
                self.exceed(str(problem), at)

    def function(
        self, name: str, args: tuple[Expression, ...], places: tuple[int, ...], at: int
    ) -> Expression:
        """Build a function call by the name in the text; some functions have checks of their
        own."""
        lower = ALIASES.get(name.lower(), name.lower())
        if lower in _SPECIAL:
            return self._build_special(lower, args, places, at)
        if lower in _CASTS:
            return self.cast(lower, args, at)
        if lower in FUNCTIONS and (lower not in _PRIVATE or lower == "%"):
            return self.call(lower, args, places, at)
        foreign = sql_functions()
        if lower in foreign:
            return self._embed(foreign[lower], args, places, at)
        if name in self.functions:
            for arg, where in zip(args, places, strict=True):
                self.need_value(arg, where, f"for {name}")
            return Call("apply", (Literal(name), *args), self.functions[name])
        known = [*FUNCTIONS, *ALIASES, *_SPECIAL, *_CASTS, *foreign, *self.functions]
        close = [f for f in difflib.get_close_matches(lower[:80], known, n=3) if f not in _PRIVATE]
        hint = f"; did you mean {' or '.join(close)}?" if close else ""
        self.fail(f"there is no function '{name[:40]}'{hint}", at)

    def cast(self, name: str, args: tuple[Expression, ...], at: int) -> Expression:
        """Convert a value; `name` is the name of the type or function, in lower case."""
        if len(args) != 1:
            self.fail(f"{name} takes one value, not {len(args)}", at)
        if not isinstance(args[0], Literal):
            return self._cast_value(args[0], CAST_NAMES[name], at)
        value = args[0].value
        if value is None:
            return args[0]
        if isinstance(value, tuple):
            self.fail(f"{name} takes one constant, found a list", at)
        kind = CAST_TYPES[CAST_NAMES[name]]
        if type_of(value) == kind and name != "float":
            return args[0]
        if kind == "integer" and isinstance(value, float) and -(2.0**63) <= value < 2.0**63:
            return Literal(int(value))
        if kind == "double" and is_number(value):
            return Literal(round_to_single(float(value)) if name == "float" else float(value))
        if isinstance(value, str):
            read = self.read_typed(value, kind, at)
            return Literal(round_to_single(read) if name == "float" else read)
        if kind == "string" and not isinstance(value, float):
            return Literal(_write_string(value))
        if isinstance(value, dt.datetime) and kind == "date":
            return Literal(value.date())
        if isinstance(value, dt.date) and kind == "timestamp":
            return Literal(dt.datetime(value.year, value.month, value.day, tzinfo=dt.UTC))
        self.fail(f"found {text_of(args[0])[:60]}, expected {article(kind)}", at)

    def _cast_value(self, node: Expression, target: str, at: int) -> Expression:
        """Build the conversion of a value that is not a constant; the value is converted for each
        event."""
        self.need_value(node, at, "for CAST")
        self.count(at)
        kind = self.type(node)
        if kind is not None and not can_cast(kind, target):
            self.fail(f"{_describe(node)} is {article(kind)} and can't be cast to {target}", at)
        if kind is not None and is_same(kind, target):
            return node
        return Call("cast", (node, Literal(target)))

    def case(
        self, branches: list[tuple[Expression, Expression]], default: Expression, at: int
    ) -> Expression:
        """Build a CASE whose values can all be compared with each other."""
        self.count(at, len(branches))
        values = [value for _, value in branches] + [default]
        known = [one for one in values if self.type(one) is not None]
        for one in known[1:]:
            a, b = self.type(known[0]), self.type(one)
            if "null" not in (a, b) and family(a) != family(b):
                self.fail(
                    f"CASE gives {_describe(known[0])}, {article(a or '')}, and {_describe(one)}, "
                    f"{article(b or '')}; expected values of one kind",
                    at,
                )
        return Case(tuple(branches), default)

    # -- elements of lists -----------------------------------------------------------------------

    def enter(self, items: Expression, at: int, shown: str | None = None) -> str:
        """Check the list of an `exists` and return the name of a new variable for its elements.
        `shown` is the variable's name in the text; None for an `any`."""
        kind = self.type(items)
        if kind not in (None, "list"):
            found = f"{_describe(items)}, {article(kind)}"
            self.fail(f"exists takes a list here, found {found}", at)
        name = f"?{len(self._shown) + 1}?"
        self._shown[name] = f"any({text_of(items)})" if shown is None else name_text((shown,))
        self._types.variables[variable_key(name)] = _element_type(items, self._types)
        return name

    def variable(self, name: str, path: tuple[str, ...], at: int) -> Variable:
        """The element of a list, or a field of it."""
        self.count(at)
        kind = self._types.variables[variable_key(name)]
        for step in path:
            closed = kind is not None and kind.kind == "struct" and not kind.is_open
            if kind is not None and closed and kind.field(step) is None:
                names = ", ".join(field.name for field in kind.fields[:8])
                self.fail(f"the elements have no field '{step}'; expected one of {names}", at)
            kind = None if kind is None else kind.step(step)
        return Variable(name, path)

    def some_element(
        self, items: Expression, name: str, condition: Expression, at: int
    ) -> Expression:
        """Build an `exists`; its variable gets a name that the condition does not use otherwise."""
        self.count(at)
        self.need_condition(condition, at)
        return make_exists(items, name, condition)

    def _build_special(
        self, name: str, args: tuple[Expression, ...], places: tuple[int, ...], at: int
    ) -> Expression:
        self.count(at)
        if name == "array":
            values = [self._need_constant(name, a, p) for a, p in zip(args, places, strict=True)]
            return Literal(tuple(values))
        if name == "if":
            if len(args) != 3:
                self.fail(f"if takes a condition and two values, not {len(args)} arguments", at)
            self.need_condition(args[0], places[0])
            return self.case([(args[0], args[1])], args[2], at)
        if name in ("isnull", "isnotnull"):
            if len(args) != 1:
                self.fail(f"{name} takes one argument, not {len(args)}", at)
            return IsNull(args[0]) if name == "isnull" else Not(IsNull(args[0]))
        if name == "isabsent":
            if len(args) != 1 or not isinstance(args[0], Attribute):
                self.fail("isabsent takes one attribute, such as isabsent(price)", at)
            return is_absent(args[0])
        if name in ("like", "ilike"):
            if len(args) not in (2, 3):
                self.fail(f"{name} takes two or three arguments, not {len(args)}", at)
            escape = self._need_constant(name, args[2], places[2]) if len(args) == 3 else None
            if escape is not None and not (isinstance(escape, str) and len(escape) == 1):
                self.fail(f"{name} takes a single character as its escape character", places[2])
            return self.like(name, args[0], args[1], escape, places[:2])  # type: ignore[arg-type]
        if name == "subject":
            return self._build_subject(args, places, at)
        if name in ("isa", "preorder"):
            return self._build_topic(name, args, places, at)
        if name == "cidr":
            return self._build_cidr(args, places, at)
        return self._build_place(name, args, places, at)

    def _need_constant(self, name: str, node: Expression, at: int) -> Any:
        if not isinstance(node, Literal) or isinstance(node.value, tuple):
            self.fail(f"{name} takes a constant here, found {_describe(node)}", at)
        return node.value

    def _need_string(self, name: str, node: Expression, at: int) -> str:
        value = self._need_constant(name, node, at)
        if not isinstance(value, str):
            self.fail(f"{name} takes a string here, found {_describe(node)}", at)
        return value

    def _build_subject(
        self, args: tuple[Expression, ...], places: tuple[int, ...], at: int
    ) -> Expression:
        if len(args) != 1:
            self.fail(f"subject takes one pattern, such as 'quotes.*.nyse', not {len(args)}", at)
        pattern = self._need_string("subject", args[0], places[0])
        problem = subjects.pattern_problem(pattern)
        if problem:
            self.fail(f"found the pattern '{pattern[:60]}': {problem}", places[0])
        return Call("subject_matches", (Attribute(("subject",)), args[0]))

    def _build_topic(
        self, name: str, args: tuple[Expression, ...], places: tuple[int, ...], at: int
    ) -> Expression:
        if not (2 if name == "isa" else 1) <= len(args) <= 2 or not isinstance(args[0], Attribute):
            self.fail(f"{name} takes an attribute{' and a topic' if name == 'isa' else ''}", at)
        path = args[0].path
        if self.type(args[0]) not in (None, "string"):
            self.fail(
                f"{name} takes a string here, found {name_text(path)}, "
                f"{article(self.type(args[0]) or '')}",
                places[0],
            )
        ontology = self.attributes.ontology(path) if self.attributes else None
        if name == "preorder":
            if ontology is None:
                self.fail(f"{name_text(path)} has no ontology, which preorder needs", places[0])
            # numbers from different ontologies can't be compared, so the term names its ontology
            mark = ontology.fingerprint
            if len(args) == 2 and self._need_string(name, args[1], places[1]) != mark:
                self.fail(
                    f"found the fingerprint of another ontology, expected '{mark}'", places[1]
                )
            return Call(name, (args[0], Literal(mark)), ontology)
        topic = self._need_string(name, args[1], places[1])
        if ontology is not None and topic not in ontology:
            near = ontology.near(topic)
            hint = f"; did you mean {' or '.join(near)}?" if near else ""
            found = f"there is no topic '{topic[:60]}' in the ontology of {name_text(path)}"
            self.fail(f"{found}{hint}", places[1])
        return Call(name, args, ontology)

    def _embed(
        self, function: SqlFunction, args: tuple[Expression, ...], places: tuple[int, ...], at: int
    ) -> Expression:
        """Build the expression for a text in another dialect, which is the argument of that
        dialect's function."""
        self.count(at)
        name = function.name
        if len(args) != 1:
            self.fail(f"{name} takes {function.argument}, not {len(args)} arguments", at)
        text = self._need_string(name, args[0], places[0])
        try:
            found = function.read(text, self._context)
        except FilterError as problem:
            raise type(problem)(problem.reason, self.text, places[0]) from None
        self.count(at, found.parts)
        return found.node

    def _build_cidr(
        self, args: tuple[Expression, ...], places: tuple[int, ...], at: int
    ) -> Expression:
        if len(args) != 2:
            self.fail(f"cidr takes an address and a network, not {len(args)} arguments", at)
        network = self._need_string("cidr", args[1], places[1])
        try:
            inet.network(network)
        except ValueError:
            self.fail(f"found '{network[:60]}', expected a network like 10.0.0.0/8", places[1])
        return self.call("cidr", args, places, at)

    def _build_place(
        self, name: str, args: tuple[Expression, ...], places: tuple[int, ...], at: int
    ) -> Expression:
        names = {"within_box": "lat, lon, south, west, north, east",
                 "within_km": "lat, lon, lat0, lon0, km"}[name]  # fmt: skip
        if len(args) != len(names.split(", ")):
            self.fail(f"{name} takes {names}; found {len(args)} arguments", at)
        for what, arg, where in list(zip(names.split(", "), args, places, strict=True))[2:]:
            value = self._need_constant(name, arg, where)
            if not is_number(value) or not math.isfinite(value):
                self.fail(f"{name} takes a number as {what}, found {_describe(arg)}", where)
            low, high = _LIMITS[what]
            if not low <= value <= high:
                self.fail(f"{what} is {value}, expected {low} to {high}", where)
        return self.call(name, args, places, at)


_LIMITS = {"south": (-90, 90), "north": (-90, 90), "west": (-180, 180), "east": (-180, 180),
           "lat0": (-90, 90), "lon0": (-180, 180), "km": (0, 20038)}  # fmt: skip


_BITS = {"L": 64, "S": 16, "Y": 8}


def _settle(node: Expression, other: str | None) -> Expression:
    """Choose the type of a number with more digits than a double, given the type `other` of the
    value that it is compared with. A double is compared with the number rounded to a double, as in
    Spark; a decimal or an integer is compared with the exact number. If the type is not known, a
    number of up to 17 digits counts as a double, because programs print doubles with up to 17
    digits.
    """
    if not isinstance(node, Literal) or not isinstance(node.value, LongDecimal):
        return node
    if other in ("decimal", "integer") or (other is None and count_digits(node.value) > 17):
        return node
    return Literal(float(node.value))


def _describe_count(least: int, most: int) -> str:
    if least == most:
        return f"{least} argument{'s' if least != 1 else ''}"
    return f"{least} to {most} arguments"


def _write_string(value: bool | int | dt.date) -> str:
    """Write a constant as a string, as Spark's cast does."""
    if isinstance(value, dt.datetime):
        text = value.replace(tzinfo=None).isoformat(sep=" ")
        return text.rstrip("0") if value.microsecond else text
    return text_of(Literal(value)) if isinstance(value, int) else value.isoformat()


def _describe(node: Expression) -> str:
    text = text_of(node)
    return text if len(text) <= 60 else text[:57] + "..."
