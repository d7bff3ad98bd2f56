"""The languages that a filter can be written in: each is a folder, and a line in registry.py.

    text ──registry──> sql          Spark's conditions, the default; other dialects end in it
                       cesql        CloudEvents SQL
                       cloudevents  filters of the CloudEvents Subscriptions API
                       eventbridge  event patterns of AWS EventBridge
                          |
                          `──> Expression (filters/language), or FilterError with a position

A dialect has a function from a text and a Context (attributes, functions) to an Expression. What no
expression of the default dialect can say becomes one function call there, such as `cesql('...')`,
by a second hook, so that every filter can be written as SQL again. No code outside this folder
names a dialect; the docstring of `parse` (filters/filter.py) lists them.

For other rooms: the table of dialects, `read` and `Context`. Users name a dialect:
`tidings.parse(text, dialect="cesql")`. Start at registry.py, then sql/dialect.py.
"""

from tidings.filters.dialects.registry import parse_term, read
from tidings.filters.language.dialect import DIALECTS, Context, Dialect, register

__all__ = [
    "DIALECTS",
    "Context",
    "Dialect",
    "parse_term",
    "read",
    "register",
]
