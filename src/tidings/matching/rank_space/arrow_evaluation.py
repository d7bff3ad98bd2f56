"""Compute expressions over whole columns with Arrow, exactly as `evaluate` does for one event.

This module does not define what an expression means; it must agree with the reference. Arrow may
have no function with exactly the meaning that filters/language/functions.py defines (remainders of
doubles, regular expressions), or may fail where the result must be null (overflow). In these cases
NotColumnar is raised, and the caller evaluates row by row. Work limits are checked before each
subexpression.

Columns have five types: large_string, int64, double, bool, and null if there are no values. If a
function is not defined for the type of a column, its result is null.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tidings.filters.language import (
    And,
    Attribute,
    Between,
    Call,
    Compare,
    Comparison,
    Expression,
    In,
    IsNull,
    IsTruth,
    Literal,
    Not,
    Or,
    text_of,
)
from tidings.filters.values import look
from tidings.matching.rank_space.arrow_functions import (
    DOUBLE,
    FUNCTIONS,
    NOTHING,
    TEXT,
    TRUTH,
    WHOLE,
    NotColumnar,
    as_double,
)


class Columnar:
    """Computes expressions over the given columns. A subexpression that occurs several times is
    computed only once."""

    def __init__(self, columns: Mapping[tuple[str, ...], Any], count: int) -> None:
        self._columns = columns
        self._nothing = pa.nulls(count)
        self._known: dict[str, Any] = {}

    def condition(self, node: Expression) -> Any:
        """Compute a condition as an array, without caching it; raises NotColumnar if Arrow can't
        compute it."""
        try:
            found = self._compute(node)
        # Arrow refuses overflows, patterns that are too long, and types for which it has no kernel.
        # In all these cases, the language defines a result, so such a condition is evaluated event
        # by event.
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # not by Arrow, but event by event
            raise NotColumnar from None
        return found if isinstance(found, pa.Array) else pa.repeat(found, len(self._nothing))

    def value(self, node: Expression) -> Any:
        """The value of a subexpression, which is cached; the value of a constant is a scalar."""
        if isinstance(node, Literal):
            return _constant(node.value)
        name = text_of(node)
        if name not in self._known:
            look()
            try:
                self._known[name] = self.condition(node)
            except NotColumnar:
                self._known[name] = None
        if self._known[name] is None:
            raise NotColumnar
        return self._known[name]

    def truth(self, node: Expression) -> Any:
        """The truth value of a condition; a value that is not Boolean counts as unknown."""
        value = self.value(node)
        return value if value.type == TRUTH else pc.cast(self._nothing, TRUTH)

    def _compute(self, node: Expression) -> Any:
        match node:
            case Attribute(path):
                return _usual(self._columns[path])
            case Call(name, args):
                return self._call(name, args)
            case Compare(op, left, right):
                return self._compare(op, self.value(left), self.value(right))
            case Between(item, low, high):
                value = self.value(item)
                not_below = self._compare(">=", value, self.value(low))
                return pc.and_kleene(not_below, self._compare("<=", value, self.value(high)))
            case In(item, options):
                value = self.value(item)
                found = [self._compare("=", value, self.value(option)) for option in options]
                return reduce(pc.or_kleene, found)
            case And(items):
                return reduce(pc.and_kleene, map(self.truth, items))
            case Or(items):
                return reduce(pc.or_kleene, map(self.truth, items))
            case Not(item):
                return pc.invert(self.truth(item))
            case IsNull(item):
                return pc.is_null(self.value(item))
            case IsTruth(item, wanted):
                return pc.fill_null(pc.equal(self.truth(item), wanted), False)
        raise NotColumnar

    def _call(self, name: str, args: tuple[Expression, ...]) -> Any:
        if name == "coalesce":
            return self._first(args)
        if name == "isnan":
            value = self.value(args[0])
            if value.type == DOUBLE:
                return pc.fill_null(pc.is_nan(value), False)
            return pc.fill_null(pc.cast(self._nothing, TRUTH), False)
        if name not in FUNCTIONS:
            raise NotColumnar
        body, kinds = FUNCTIONS[name]
        values = [self.value(arg) for arg in args]
        for at, value in enumerate(values):
            if value.type not in kinds[min(at, len(kinds) - 1)]:
                return self._nothing
        return body(*values)

    def _first(self, args: tuple[Expression, ...]) -> Any:
        values = [self.value(arg) for arg in args]
        values = [value for value in values if value.type != NOTHING]
        if len({value.type for value in values}) > 1:
            raise NotColumnar  # because Arrow would convert the values to one type
        return pc.coalesce(*values) if values else self._nothing

    def _compare(self, op: Comparison, left: Any, right: Any) -> Any:
        if _family(left.type) != _family(right.type) or left.type == NOTHING:
            order = None
        else:
            order = _order(op, *_alike(left, right))
        if op != "<=>":
            return pc.cast(self._nothing, TRUTH) if order is None else order
        absent = pc.is_null(left), pc.is_null(right)
        return pc.if_else(pc.or_(*absent), pc.and_(*absent), False if order is None else order)


def _usual(column: Any) -> Any:
    """A column converted to one of the five types."""
    is_, kind = pa.types, column.type
    if is_.is_dictionary(kind):
        return _usual(column.dictionary_decode())
    if is_.is_string(kind) or is_.is_large_string(kind):
        return column.cast(TEXT)
    if is_.is_integer(kind) and not is_.is_uint64(kind):
        return column.cast(WHOLE)
    if is_.is_float32(kind) or is_.is_float64(kind):
        return column.cast(DOUBLE)
    if kind in (TRUTH, NOTHING):
        return column
    raise NotColumnar


def _constant(value: Any) -> Any:
    kinds = {str: TEXT, int: WHOLE, float: DOUBLE, bool: TRUTH, type(None): NOTHING}
    if type(value) not in kinds:
        raise NotColumnar
    return pa.scalar(value, kinds[type(value)])


# -- comparison --------------------------------------------------------------------------------


def _family(kind: Any) -> Any:
    return DOUBLE if kind == WHOLE else kind


def _alike(left: Any, right: Any) -> tuple[Any, Any]:
    """Convert two values of one family to one type. Raise NotColumnar if doubles don't represent
    the numbers exactly."""
    if left.type == right.type:
        return left, right
    return as_double(left, exact=True), as_double(right, exact=True)


def _order(op: Comparison, left: Any, right: Any) -> Any:
    match op:
        case "=" | "<=>":
            return _equal(left, right)
        case "!=":
            return pc.invert(_equal(left, right))
        case "<":
            return _below(left, right)
        case ">":
            return _below(right, left)
        case "<=":
            return pc.invert(_below(right, left))
        case ">=":
            return pc.invert(_below(left, right))


def _equal(left: Any, right: Any) -> Any:
    found = pc.equal(left, right)
    return pc.or_(found, pc.and_(pc.is_nan(left), pc.is_nan(right))) if _floats(left) else found


def _below(left: Any, right: Any) -> Any:
    """Whether left < right; NaN is above every number and equal to itself."""
    found = pc.less(left, right)
    if not _floats(left):
        return found
    return pc.or_(found, pc.and_(pc.is_nan(right), pc.invert(pc.is_nan(left))))


def _floats(value: Any) -> bool:
    return bool(value.type == DOUBLE)
