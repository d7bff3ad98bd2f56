"""The languages that a filter can be written in: each has a folder and a line in registry.py.

    text ──registry──> sql          Spark's conditions; the default
                       cesql        CloudEvents SQL
                       cloudevents  filters of the CloudEvents Subscriptions API
                       eventbridge  event patterns of AWS EventBridge
                          |
                          `──> Expression (filters/language), or FilterError with a position

A dialect provides a function that turns text and a Context (attributes, functions) into an
Expression. A condition that SQL can't express becomes one function call, such as `cesql('...')`, so
every filter can be written as SQL; a second hook of the dialect parses these calls. No other code
of the room `filters` names a dialect, except the default, `sql`; docs/dialects.md lists them all.

Other rooms use the table of dialects, `read` and `Context`. Users choose a dialect by name:
`tidings.parse(text, dialect="cesql")`. Start at registry.py, then sql/dialect.py.
"""

from tidings.filters.dialects.registry import parse_term, read
from tidings.filters.language.dialect import (
    DIALECTS,
    Context,
    Dialect,
    FilterField,
    OwnWords,
    register,
    rekeyed_calls,
)

__all__ = [
    "DIALECTS",
    "Context",
    "Dialect",
    "FilterField",
    "OwnWords",
    "parse_term",
    "read",
    "register",
    "rekeyed_calls",
]
