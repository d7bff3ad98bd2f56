"""The table of dialects, and the function that parses a text in one of them.

Each dialect has a folder here and a line in the table below. The module `dialect.py` of a dialect
is imported on first use, so a process loads only the dialects that it uses. The module defines
these names:

    parse(text, context) -> Expression       parses a text, or raises FilterError
    embed(text, context) -> Embedded         the same for text inside SQL; only with `function`
    WORDS: OwnWords                          explains its filters; only with `has_words`
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from tidings.filters.language.dialect import (
    DIALECTS,
    Context,
    Dialect,
    Embedded,
    OwnWords,
    SqlFunction,
    register,
)
from tidings.filters.language.expression import Expression
from tidings.filters.language.sql_writer import text_of
from tidings.model import FilterError

Source = str | dict[str, Any] | list[Any]  # only dialects that are written in JSON accept objects


@cache
def _load(folder: str) -> Any:
    return import_module(f"tidings.filters.dialects.{folder}.dialect")


def _in_folder(
    folder: str,
    *,
    takes_json: bool = False,
    function: tuple[str, str] | None = None,
    write: Callable[[Expression], str] | None = None,
    has_words: bool = False,
    is_rekeyed: bool = False,
    has_names: bool = False,
) -> Dialect:
    """The dialect of a folder; the dialect and the folder have the same name. `function` is a pair:
    the name of the SQL function that embeds the dialect, and a description of the function's
    argument."""

    def parse(text: str, context: Context) -> Expression:
        node: Expression = _load(folder).parse(text, context)
        return node

    def embed(text: str, context: Context) -> Embedded:
        found: Embedded = _load(folder).embed(text, context)
        return found

    sql_function = None if function is None else SqlFunction(*function, embed)
    words = OwnWords(
        lambda *given: _words(folder).explain(*given),
        lambda *given: _words(folder).fields(*given),
        lambda *given: _words(folder).restore(*given),
    )
    return Dialect(
        folder, parse, takes_json, sql_function, write, words if has_words else None, is_rekeyed,
        has_names,
    )  # fmt: skip


def _words(folder: str) -> OwnWords:
    found: OwnWords = _load(folder).WORDS
    return found


register(_in_folder("sql", write=text_of, has_names=True))
register(_in_folder("cesql", function=("cesql", "one expression, such as 'INT(n) + 1'")))
register(_in_folder("cloudevents", takes_json=True, has_names=True))
register(
    _in_folder(
        "eventbridge",
        function=("event_pattern", "one pattern as JSON"),
        takes_json=True,
        has_words=True,
        is_rekeyed=True,  # earlier releases did not distinguish null from absent
    )
)


def read(text: Source, dialect: str, context: Context) -> Expression:
    """Parse a text in a dialect."""
    found = DIALECTS.get(dialect)
    if found is None:
        known = ", ".join(sorted(DIALECTS))
        shown = text if isinstance(text, str) else ""
        raise FilterError(f"there is no dialect '{dialect}', expected one of: {known}", shown)
    if found.takes_json and isinstance(text, (dict, list)):
        text = _write_json(text)
    if not isinstance(text, str):
        raise FilterError(f"found {type(text).__name__}, expected the text of a filter")
    try:
        text.encode()
    except UnicodeEncodeError as bad:
        raise FilterError(
            f"found an unpaired surrogate, U+{ord(text[bad.start]):04X}, expected valid Unicode",
            text,
            bad.start,
        ) from None
    return found.parse(text, context)


def as_text(source: Source) -> str:
    """The text of a filter; the filter may be given as an object."""
    return source if isinstance(source, str) else _write_json(source)


def parse_term(text: str, context: Context) -> Expression:
    """Parse a term that `text_of` wrote; a term need not be a condition."""
    node: Expression = _load("sql").parse_term(text, context)
    return node


def _write_json(value: Source) -> str:
    try:
        # msgspec is not used, because it would write NaN as null
        return json.dumps(value, allow_nan=False, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError) as problem:
        raise FilterError(f"the object can't be written as JSON: {problem}") from None
