"""Finds out whether the filters of a channel fit another declaration.

A filter keeps its node when the declaration changes, so the filter must also keep its meaning: an
attribute that a filter tests keeps its type. An attribute that was not declared may get a type, if
the filters that test it fit that type.

Cost: all texts are searched for the names whose types would change, and only the filters that
contain such a name are parsed. The first declaration of a channel parses all filters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from tidings.filters import Attributes, Filter, parse
from tidings.filters.language import attributes_of
from tidings.model import DataType, FilterError, write_path
from tidings.store.declared.declaration import DeclarationError

MOST_LISTED = 3  # filters that an error names
MOST_COUNTED = 1_000  # the search ends after this many filters that don't fit
LONGEST = 80  # characters of a text in an error
Functions = Mapping[str, Callable[..., Any]]


class StoredFilter(NamedTuple):
    """A filter of a channel; `who` is the id of its subscription, or the name of its node."""

    who: str
    text: str
    dialect: str


def need_fit(
    before: Attributes | None,
    after: Attributes | None,
    filters: Iterable[StoredFilter],
    functions: Functions | None = None,
    *,
    only_types: bool = False,
) -> None:
    """Raise DeclarationError if any filter uses an attribute that would get another type, or would
    no longer be declared. The error lists some of these filters. Filters that the channel refuses
    already are ignored. With `only_types`, filters that would be refused for other reasons are
    ignored too."""
    found: list[str] = []
    many = 0
    first = ""
    for one, reason in _unfit(before, after, filters, functions, only_types):
        many += 1
        first = first or reason
        if many == MOST_COUNTED:
            break
        if len(found) < MOST_LISTED:
            text = one.text if len(one.text) <= LONGEST else f"{one.text[: LONGEST - 3]}..."
            found.append(f"{one.who}: {text}")
    if many:
        more = f" and {many - len(found):,} more" if many > len(found) else ""
        more = " and many more" if many == MOST_COUNTED else more
        least = "at least " if many == MOST_COUNTED else ""
        raise DeclarationError(
            f"{first}; {least}{many:,} filter{'s do' if many > 1 else ' does'} not fit the "
            f"declaration: {'; '.join(found)}{more}; drop {'them' if many > 1 else 'it'} first, or "
            "use another name for the attribute"
        )


def _unfit(
    before: Attributes | None,
    after: Attributes | None,
    filters: Iterable[StoredFilter],
    functions: Functions | None,
    only_types: bool,
) -> Iterator[tuple[StoredFilter, str]]:
    names = _find_changes(before, after)
    if (only_types and before is None) or names == []:
        return
    for one in filters:
        if names is not None and not _may_use(one, names):
            continue
        was = _parse(one, before, functions)
        if was is None:
            continue  # the filter is set aside
        reason = _find_retyping(was, before, after)
        if not reason and not only_types:
            try:
                parse(one.text, one.dialect, attributes=after, functions=functions)
            except FilterError as problem:
                reason = problem.reason
        if reason:
            yield one, reason


def _find_retyping(was: Filter, before: Attributes | None, after: Attributes | None) -> str:
    """The reason why the new types would change the meaning of a filter; empty if they would
    not."""
    for path in sorted(attributes_of(was.expression)):
        had = None if before is None else before.data_type(path)
        gets = None if after is None else after.data_type(path)
        if had is not None and not _keeps(had, gets):
            now = "would not be declared" if gets is None else f"would become {gets}"
            return f"'{write_path(path)}' is {had} and {now}"
    return ""


def _keeps(had: DataType, gets: DataType | None) -> bool:
    """Whether a type stays the same, or only gets more fields in its structs, which no filter uses
    yet."""
    if gets is None or had.kind != gets.kind:
        return False
    if had.kind == "struct":
        return had.is_open == gets.is_open and all(
            _keeps(one.type, gets.field(one.name)) for one in had.fields
        )
    if had.kind in ("list", "map") and had.element is not None:
        return str(had.key) == str(gets.key) and _keeps(had.element, gets.element)
    return str(had) == str(gets)


def _parse(
    one: StoredFilter, attributes: Attributes | None, functions: Functions | None
) -> Filter | None:
    try:
        return parse(one.text, one.dialect, attributes=attributes, functions=functions)
    except FilterError:
        return None


def _find_changes(before: Attributes | None, after: Attributes | None) -> list[str] | None:
    """The names of attributes whose types would change. None means any name: until now, filters
    could test undeclared attributes, and with the new declaration they can't."""
    was_open = before is None or not before.closed
    if was_open and not (after is None or not after.closed):
        return None
    had = {} if before is None else before.tree
    gets = {} if after is None else after.tree
    return [name for name in {**had, **gets} if str(had.get(name)) != str(gets.get(name))]


def _may_use(one: StoredFilter, names: list[str]) -> bool:
    """Whether it is possible that a filter uses one of the names. The SQL text of a filter contains
    each name exactly as it is declared, unless the name has a backtick."""
    return one.dialect != "sql" or any("`" in name or name in one.text for name in names)
