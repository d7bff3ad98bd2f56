"""The languages that a filter can be written in: name -> text to expression.

A dialect is one function from a text and a Context to an Expression, raising FilterError for what
it refuses; adding one is a module with that function and a line here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from tidings.filters.attributes import Attributes
from tidings.filters.expression import Expression
from tidings.model import FilterError


class Context(msgspec.Struct, frozen=True):
    """What a text is read against: the channel's attributes, the application's own functions."""

    attributes: Attributes | None = None
    functions: Mapping[str, Callable[..., Any]] = {}


Dialect = Callable[[str, Context], Expression]


def read(text: str, dialect: str, context: Context) -> Expression:
    """The expression of a text in a dialect."""
    reader = DIALECTS.get(dialect)
    if reader is None:
        known = ", ".join(sorted(DIALECTS))
        raise FilterError(f"there is no dialect '{dialect}', expected one of: {known}", text)
    if not isinstance(text, str):
        raise FilterError(f"found {type(text).__name__}, expected the text of a filter")
    try:
        text.encode()
    except UnicodeEncodeError as bad:
        raise FilterError(
            f"found half a surrogate pair, U+{ord(text[bad.start]):04X}, expected valid Unicode",
            text,
            bad.start,
        ) from None
    return reader(text, context)


def _sql(text: str, context: Context) -> Expression:
    from tidings.filters.sql import parse_sql

    return parse_sql(text, context)


def _eventbridge(text: str, context: Context) -> Expression:
    from tidings.filters.eventbridge import parse_eventbridge

    return parse_eventbridge(text, context)


DIALECTS: dict[str, Dialect] = {"sql": _sql, "eventbridge": _eventbridge}
