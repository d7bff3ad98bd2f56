"""What a dialect is to the rest of the room: one object with its hooks, in one table.

    DIALECTS[name]   parse      a text of it -> expression
                     function   SQL's function for a text of it: cesql('INT(n) + 1') -> expression
                     write      expression -> a text of it; most dialects have no writer

`filters/dialects` fills the table. Parsers and commands look dialects up here and name none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from tidings.filters.language.attributes import Attributes
from tidings.filters.language.expression import Expression


class Context(msgspec.Struct, frozen=True):
    """What a text is read against: the channel's attributes, the application's own functions."""

    attributes: Attributes | None = None
    functions: Mapping[str, Callable[..., Any]] = {}
    most_parts: int = 1 << 62  # attributes, comparisons and calls; LimitError for more


class Embedded(msgspec.Struct, frozen=True):
    """A text of a dialect that stands inside another: its expression, and how many parts it has."""

    node: Expression
    parts: int


class SqlFunction(msgspec.Struct, frozen=True):
    """The function by which SQL holds a text of a dialect: `cesql('INT(n) + 1')`."""

    name: str
    argument: str
    """What it takes, for messages: "one pattern as JSON"."""
    read: Callable[[str, Context], Embedded]


class Dialect(msgspec.Struct, frozen=True):
    """A language that filters can be written in. Its hooks raise FilterError for a bad text."""

    name: str
    parse: Callable[[str, Context], Expression]
    takes_json: bool = False
    """Its texts are JSON, so it takes parsed objects too."""
    function: SqlFunction | None = None
    """None when SQL can say everything that it can."""
    write: Callable[[Expression], str] | None = None
    """Writes every expression without nested values; see nested.py."""


DIALECTS: dict[str, Dialect] = {}


def register(dialect: Dialect) -> None:
    """Add a dialect to the table, by its name."""
    DIALECTS[dialect.name] = dialect


def sql_functions() -> dict[str, SqlFunction]:
    """The functions by which SQL holds texts of other dialects, by their names."""
    return {one.function.name: one.function for one in DIALECTS.values() if one.function}
