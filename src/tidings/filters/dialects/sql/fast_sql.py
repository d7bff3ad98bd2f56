"""The fast parser for the most common filters: attributes tested against constants, joined by AND.

    symbol = 'ACME' AND price BETWEEN 90 AND 110 AND venue IN ('NYSE', 'LSE') AND name LIKE 'A%'

The fast parser parses a subset of the grammar of dialect.py in a fraction of the time, because its
regular expression reads a whole test at once, not just a token. The fast parser never refuses a
text. The fast parser returns None for anything outside the subset: an escape, a comment, OR,
brackets, or a name or type that does not fit the attributes. In that case the full parser decides,
with its messages and positions. If both parsers return an expression, the two are equal; a test
checks that.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TypeVar

from tidings.filters.language.attributes import Attributes, family
from tidings.filters.language.dialect import Context
from tidings.filters.language.expression import (
    COMPARISONS,
    And,
    Attribute,
    Between,
    Call,
    Compare,
    Expression,
    In,
    IsNull,
    Literal,
    Not,
)
from tidings.filters.language.sql_writer import RESERVED
from tidings.filters.language.tokens import MAX_LENGTH
from tidings.filters.values import like
from tidings.filters.values.sets import LONGEST_REMEMBERED, MOST_REMEMBERED
from tidings.model import LongDecimal, count_digits, normalise

_STRING = r"""'[^'\\]*'|"[^"\\]*\""""
# numbers are so short that an integer fits in 64 bits and a double is finite
_CONSTANT = rf"(?:{_STRING}|-?[0-9]{{1,18}}(?:\.[0-9]{{1,40}})?|true|false)"

# Matches one test, together with the AND that follows it or the end of the text. `rest` matches
# everything after the last test, so no character is read twice, however long the text is.
_TEST = re.compile(
    rf"""
      \s* (?P<name> [a-z_]\w* (?: \.[a-z_]\w* ){{0,8}} )
      (?: \s* (?P<op> <>|<=|>=|!=|==|[=<>] ) \s* (?P<value> {_CONSTANT} )
        | \s+ BETWEEN \s+ (?P<low> {_CONSTANT} ) \s+ AND \s+ (?P<high> {_CONSTANT} )
        | \s+ IN \s* \( \s* (?P<options> {_CONSTANT} (?: \s*,\s* {_CONSTANT} )* ) \s* \)
        | \s+ LIKE \s+ (?P<pattern> {_STRING} )
        | \s+ IS \s+ (?P<null> (?: NOT \s+ )? NULL )
      )
      (?: \s+ AND \s+ (?=.) | \s* \Z )
    | (?P<rest> .+ )
    """,
    re.VERBOSE | re.DOTALL | re.ASCII | re.IGNORECASE,
)
_OPTION = re.compile(_CONSTANT, re.ASCII | re.IGNORECASE)

Found = TypeVar("Found")
Known = tuple[Attribute, str | None]  # an attribute and the family of its type
_names: dict[str, Known] = {}
_constants: dict[str, tuple[Literal, str]] = {}


def read(text: str, context: Context) -> Expression | None:
    """Parse a text in the subset; return None for any other text, valid or not."""
    found = _TEST.findall(text)
    if not found or found[-1][-1] or len(text) > MAX_LENGTH or 2 * len(found) > context.most_parts:
        return None
    attributes = context.attributes
    names = _names if attributes is None else attributes.known
    tests: list[Expression] = []
    for name, op, value, low, high, options, pattern, null, _ in found:
        known = names.get(name) or _find_attribute(name, attributes, names)
        if known is None:
            return None
        attribute, kind = known
        if value:
            constant, other = _constants.get(value) or _read_constant(value)
            if kind is not None and kind != other:
                return None
            tests.append(Compare(COMPARISONS[op], attribute, constant))
        elif low:
            constant, other = _constants.get(low) or _read_constant(low)
            last, third = _constants.get(high) or _read_constant(high)
            if kind is not None and (kind != other or kind != third):
                return None
            tests.append(Between(attribute, constant, last))
        elif options:
            pairs = [_constants.get(one) or _read_constant(one) for one in _OPTION.findall(options)]
            if kind is not None and any(kind != other for _, other in pairs):
                return None
            tests.append(In(attribute, tuple([constant for constant, _ in pairs])))
        elif null:
            tests.append(IsNull(attribute) if len(null) == 4 else Not(IsNull(attribute)))
        else:
            if kind not in (None, "string") or (len(pattern) > like.LONGEST_REMEMBERED):
                return None
            tests.append(Call("like", (attribute, _read_pattern(pattern[1:-1]))))
    return tests[0] if len(tests) == 1 else And(tuple(tests))


def _find_attribute(
    name: str, attributes: Attributes | None, names: dict[str, Known]
) -> Known | None:
    """The attribute with a name, cached; None if the full parser must decide about the name."""
    path = tuple(name.split("."))
    if path[0].upper() in RESERVED:
        return None
    if attributes is None:
        known: Known = Attribute(path), None
    elif attributes.problem(path) is None:
        known = Attribute(path), family(attributes.type(path))
    else:
        return None
    return _remember(names, name, known)


def _read_constant(text: str) -> tuple[Literal, str]:
    """A constant and its family. Constants are cached, because filters repeat the same values."""
    first = text[0]
    if first in "'\"":
        return _remember(_constants, text, (Literal(text[1:-1]), "string"))
    if first in "tTfF":
        return _remember(_constants, text, (Literal(first in "tT"), "boolean"))
    if "." in text:  # fractions are not cached, because they rarely repeat
        if len(text) > 16:
            return _read_long(text)
        return Literal(float(text)), "number"
    return _remember(_constants, text, (Literal(int(text)), "number"))


def _read_long(text: str) -> tuple[Literal, str]:
    """A number that may have more digits than a double can represent. Without declared types, a
    number of up to 17 digits is a double. If types are declared, the full parser decides, because
    no attribute has the family `long`."""
    exact, value = normalise(Decimal(text)), float(text)
    if not isinstance(exact, LongDecimal):
        return Literal(value if exact == value else exact), "number"
    return Literal(value if count_digits(exact) <= 17 else exact), "long"


def _remember(memory: dict[str, Found], text: str, found: Found) -> Found:
    if len(text) <= LONGEST_REMEMBERED:
        if len(memory) >= MOST_REMEMBERED:
            memory.clear()
        memory[text] = found
    return found


def _read_pattern(text: str) -> Literal:
    """A pattern in canonical form. A pattern without backslashes is always valid."""
    if "%%" in text or "%_" in text:
        text = like.join(like.split(text))
    return Literal(text)
