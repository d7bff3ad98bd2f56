"""The interface of a dialect: an object with hooks, registered in one table.

    DIALECTS[name]   parse      text in the dialect -> expression
                     function   embeds the dialect in SQL: cesql('INT(n) + 1') -> expression
                     write      expression -> text in the dialect; most dialects have no writer
                     words      explains filters as the dialect writes them; without this hook,
                                filters are explained as SQL

The folder `filters/dialects` fills the table. Parsers and commands look dialects up here, so none
of them names a particular dialect.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from tidings.filters.language.attributes import Attributes
from tidings.filters.language.expression import Expression
from tidings.model import Event, Path


class Context(msgspec.Struct, frozen=True):
    """The context of parsing: the channel's attributes, application functions, and a limit."""

    attributes: Attributes | None = None
    functions: Mapping[str, Callable[..., Any]] = {}
    most_parts: int = 1 << 62  # the most attributes, comparisons and calls; more raise LimitError


class Embedded(msgspec.Struct, frozen=True):
    """Text in one dialect inside a filter in another: the expression of the inner text, and its
    number of parts."""

    node: Expression
    parts: int


class SqlFunction(msgspec.Struct, frozen=True):
    """The SQL function that embeds a text in a dialect: `cesql('INT(n) + 1')`."""

    name: str
    argument: str
    """The function's argument, as messages describe it: "one pattern as JSON"."""
    read: Callable[[str, Context], Embedded]


class TestReport(msgspec.Struct, frozen=True):
    """The result of one test: the term, the expected values, the actual value."""

    term: str
    expected: str
    actual: str
    passed: bool

    def __str__(self) -> str:
        if self.passed:
            return f"passed: {self.expected} ({self.term} is {self.actual})"
        return f"failed: expected {self.expected}, but {self.term} is {self.actual}"


class FilterField(msgspec.Struct, frozen=True):
    """One field of a filter, as written in a dialect whose filters consist of fields."""

    path: Path
    # the texts of the values that the filter accepts there; any of them is enough
    values: frozenset[str]
    label: str  # for people: the path and what the filter expects there
    text: str  # a filter that tests only this field, as text


class OwnWords(msgspec.Struct, frozen=True):
    """How a dialect describes its filters in its own terms, instead of in SQL."""

    explain: Callable[[str, Event, bool], list[TestReport]]
    """Reports which tests of a text a notification passes, and which it fails. The third argument
    says whether the notification matches the whole text."""
    fields: Callable[[str], list[FilterField]]
    """The fields of a text."""
    restore: Callable[[Expression], str | None]
    """Text in the dialect from which an expression may have been parsed; None if there is none.
    The caller must check that the text gives the same filter."""


class Dialect(msgspec.Struct, frozen=True):
    """A language that filters can be written in. The hooks of a dialect raise FilterError for
    invalid text."""

    name: str
    parse: Callable[[str, Context], Expression]
    takes_json: bool = False
    """True if the dialect is written in JSON; then it also accepts parsed objects."""
    function: SqlFunction | None = None
    """None if SQL can express everything that the dialect can."""
    write: Callable[[Expression], str] | None = None
    """Writes an expression as text; the expression must not have nested values (see nested.py)."""
    words: OwnWords | None = None
    is_rekeyed: bool = False
    """True if the identities and tests of filters that call `function` have changed since the first
    version of logs and snapshots. When older logs and snapshots are opened, the identities and
    tests of such filters are computed again."""
    has_names: bool = False
    """True if parts of a filter can have names."""


DIALECTS: dict[str, Dialect] = {}


def register(dialect: Dialect) -> None:
    """Add a dialect to the table."""
    DIALECTS[dialect.name] = dialect


def sql_functions() -> dict[str, SqlFunction]:
    """The SQL functions that embed other dialects, by name."""
    return {one.function.name: one.function for one in DIALECTS.values() if one.function}


def rekeyed_calls() -> list[str]:
    """The calls for which filters had different identities in the first version of logs and
    snapshots, each given as the start of the call in lower case, such as `event_pattern(`."""
    found = (one.function for one in DIALECTS.values() if one.is_rekeyed)
    return [f"{one.name}(" for one in found if one is not None]


def naming_dialect(text: str) -> str | None:
    """The dialect of a text with named parts; None if there is none. At most one JSON dialect and
    one other dialect have named parts, so the first character of the text shows which of the two it
    is in."""
    is_json = text.lstrip()[:1] in ("{", "[")
    found = (one.name for one in DIALECTS.values() if one.has_names and one.takes_json == is_json)
    return next(found, None)
