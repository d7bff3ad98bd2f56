"""The interface of a dialect: an object with hooks, registered in one table.

    DIALECTS[name]   parse      text in the dialect -> expression
                     function   embeds the dialect in SQL: cesql('INT(n) + 1') -> expression
                     write      expression -> text in the dialect; most dialects have no writer

`filters/dialects` fills the table. Parsers and commands look dialects up here, so none of them
names a particular dialect.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from tidings.filters.language.attributes import Attributes
from tidings.filters.language.expression import Expression


class Context(msgspec.Struct, frozen=True):
    """The context of parsing: the channel's attributes, the application's functions, a limit."""

    attributes: Attributes | None = None
    functions: Mapping[str, Callable[..., Any]] = {}
    most_parts: int = 1 << 62  # attributes, comparisons and calls; more raise LimitError


class Embedded(msgspec.Struct, frozen=True):
    """A text of one dialect inside another: its expression and its number of parts."""

    node: Expression
    parts: int


class SqlFunction(msgspec.Struct, frozen=True):
    """The SQL function that embeds a text of a dialect: `cesql('INT(n) + 1')`."""

    name: str
    argument: str
    """Its argument as messages describe it: "one pattern as JSON"."""
    read: Callable[[str, Context], Embedded]


class Dialect(msgspec.Struct, frozen=True):
    """A language that filters can be written in. Its hooks raise FilterError for invalid text."""

    name: str
    parse: Callable[[str, Context], Expression]
    takes_json: bool = False
    """True if the dialect is written in JSON; then it also accepts parsed objects."""
    function: SqlFunction | None = None
    """None if SQL can express everything that the dialect can."""
    write: Callable[[Expression], str] | None = None
    """Writes an expression as text; the expression may not have nested values (see nested.py)."""


DIALECTS: dict[str, Dialect] = {}


def register(dialect: Dialect) -> None:
    """Add a dialect to the table."""
    DIALECTS[dialect.name] = dialect


def sql_functions() -> dict[str, SqlFunction]:
    """The SQL functions that embed other dialects, by name."""
    return {one.function.name: one.function for one in DIALECTS.values() if one.function}
