"""The leaves of expressions: attributes, elements of lists, numbers, and values with a type."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

from tidings.filters.language.builders.checker import Checker, ScopedTypes, describe
from tidings.filters.language.evaluation import variable_key
from tidings.filters.language.expression import Attribute, Call, Expression, Literal, Variable
from tidings.filters.language.sql_writer import name_text, text_of
from tidings.filters.language.tokens import Token
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
    LongDecimal,
    Type,
    article,
    is_number,
    normalise,
    read_value,
    type_of,
)

TYPE_NAMES = frozenset(CAST_NAMES) - {"to_date", "to_timestamp"}
_BITS = {"L": 64, "S": 16, "Y": 8}


class LeafBuilder(Checker):
    """Builds leaves, and converts values."""

    def attribute(self, path: tuple[str, ...], at: int) -> Attribute:
        self.count(at)
        problem = self.attributes.problem(path) if self.attributes else None
        if problem:
            self.fail(problem, at)
        return Attribute(path)

    def enter(self, items: Expression, at: int, shown: str | None = None) -> str:
        """Check the list of an `exists` and return the name of a new variable for its elements.
        `shown` is the variable's name in the text; None for an `any`."""
        kind = self.type(items)
        if kind not in (None, "list"):
            found = f"{describe(items)}, {article(kind)}"
            self.fail(f"exists takes a list here, found {found}", at)
        name = f"?{len(self.shown) + 1}?"
        self.shown[name] = f"any({text_of(items)})" if shown is None else name_text((shown,))
        self.types.variables[variable_key(name)] = _element_type(items, self.types)
        return name

    def variable(self, name: str, path: tuple[str, ...], at: int) -> Variable:
        """The element of a list, or a field of it."""
        self.count(at)
        kind = self.types.variables[variable_key(name)]
        for step in path:
            closed = kind is not None and kind.kind == "struct" and not kind.is_open
            if kind is not None and closed and kind.field(step) is None:
                names = ", ".join(field.name for field in kind.fields[:8])
                self.fail(f"the elements have no field '{step}'; expected one of {names}", at)
            kind = None if kind is None else kind.step(step)
        return Variable(name, path)

    # -- constants -----------------------------------------------------------------------------

    def number(self, token: Token, negative: bool = False) -> Any:
        """The number in a token: an integer, a double, or a LongDecimal if it has no exponent and
        has more digits than a double."""
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
            self.fail(f"{describe(node)} is {article(kind)} and can't be cast to {target}", at)
        if kind is not None and is_same(kind, target):
            return node
        return Call("cast", (node, Literal(target)))


def _element_type(items: Expression, types: ScopedTypes) -> DataType | None:
    """The type of the elements of a list; None if it is not known."""
    if isinstance(items, Attribute):
        found = types.data_type(items.path)
    elif isinstance(items, Variable):
        found = types.data_type((variable_key(items.name), *items.path))
    else:
        return None
    return found.element if found is not None and found.kind == "list" else None


def _write_string(value: bool | int | dt.date) -> str:
    """Write a constant as a string, as Spark's cast does."""
    if isinstance(value, dt.datetime):
        text = value.replace(tzinfo=None).isoformat(sep=" ")
        return text.rstrip("0") if value.microsecond else text
    return text_of(Literal(value)) if isinstance(value, int) else value.isoformat()
