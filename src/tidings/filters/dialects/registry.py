"""The languages that a filter can be written in: name -> text to expression.

A dialect is one function from a text and a Context to an Expression, raising FilterError for what
it refuses; adding one is a module with that function and a line here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from tidings.filters.language.attributes import Attributes
from tidings.filters.language.expression import Expression
from tidings.model import FilterError


class Context(msgspec.Struct, frozen=True):
    """What a text is read against: the channel's attributes, the application's own functions."""

    attributes: Attributes | None = None
    functions: Mapping[str, Callable[..., Any]] = {}
    most_parts: int = 1 << 62  # attributes, comparisons and calls; LimitError for more


Dialect = Callable[[str, Context], Expression]
Source = str | dict[str, Any] | list[Any]  # objects for dialects whose texts are JSON


def read(text: Source, dialect: str, context: Context) -> Expression:
    """The expression of a text in a dialect."""
    reader = DIALECTS.get(dialect)
    if reader is None:
        known = ", ".join(sorted(DIALECTS))
        shown = text if isinstance(text, str) else ""
        raise FilterError(f"there is no dialect '{dialect}', expected one of: {known}", shown)
    if dialect in JSON and isinstance(text, (dict, list)):
        text = _as_json(text)
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


def _as_json(value: Source) -> str:
    try:
        # not msgspec's, which makes null of a number that is none
        return json.dumps(value, allow_nan=False, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError) as problem:
        raise FilterError(f"the object can't be written as JSON: {problem}") from None


def _sql(text: str, context: Context) -> Expression:
    from tidings.filters.dialects.sql.dialect import parse_sql

    return parse_sql(text, context)


def _cesql(text: str, context: Context) -> Expression:
    from tidings.filters.dialects.cesql.dialect import parse_cesql

    return parse_cesql(text, context)


def _cloudevents(text: str, context: Context) -> Expression:
    from tidings.filters.dialects.cloudevents.dialect import parse_cloudevents

    return parse_cloudevents(text, context)


def _eventbridge(text: str, context: Context) -> Expression:
    from tidings.filters.dialects.eventbridge.dialect import parse_eventbridge

    return parse_eventbridge(text, context)


DIALECTS: dict[str, Dialect] = {
    "sql": _sql, "cesql": _cesql, "cloudevents": _cloudevents, "eventbridge": _eventbridge,
}  # fmt: skip
JSON = frozenset({"cloudevents", "eventbridge"})
"""Those whose texts are JSON: they take objects too."""
