"""Notes on filters and events that don't fit each other; the notes explain why nothing matched.

Types are not declared by default, and a comparison with a value of another family is unknown. So a
typo in a name causes no error, and nothing matches. If a date is a string in one file and a date in
another, there is no error either, and nothing matches. From the first events, AttributeWatch finds
such attributes, and filters whose tests don't fit the attributes' types. AttributeWatch checks each
filter on its own.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from typing import Any

from tidings import Filter
from tidings.filters import Misfit, misfits_of
from tidings.filters.canonical import Form, reads
from tidings.filters.language import FUNCTIONS, Attribute, Call, conform, find, name_text
from tidings.filters.values import sets
from tidings.model import ABSENT, NotificationError, list_some

LOOKED_AT = 1_000  # events that are inspected

_NAMES = {
    sets.BOOLEAN: "booleans", sets.NUMBER: "numbers", sets.NAN: "numbers", sets.STRING: "strings",
    sets.TIME: "dates or timestamps", sets.OTHER: "lists or structs",
}  # fmt: skip
_FAMILIES = {
    sets.BOOLEAN: "boolean", sets.NUMBER: "number", sets.NAN: "number", sets.STRING: "string",
    sets.TIME: "time", sets.OTHER: "list",
}  # fmt: skip
_TYPES = {"booleans": "boolean", "numbers": "double", "a number": "double", "strings": "string",
          "a string": "string", "dates or times": "timestamp", "a time": "timestamp"}  # fmt: skip
_DECLARED = {"boolean": "boolean", "number": "double", "time": "timestamp"}


class AttributeWatch:
    """Looks at the first events, and collects the families of the values of each attribute that
    filters read. `filters` are pairs of id and filter. `texts` is true if the events come from a
    format in which every value is text, such as CSV, and can be declared as a string."""

    def __init__(self, filters: Iterable[tuple[int | str, Filter]], texts: bool = False) -> None:
        self._filters = list(filters)
        paths = set().union(*(reads(one.form) for _, one in self._filters))
        self._seen: dict[tuple[str, ...], set[int]] = {path: set() for path in paths}
        self._texts = texts
        self._null: set[tuple[str, ...]] = set()  # attributes that are null in some event
        # the types that every value so far can be converted to
        self._possible = {path: {"string", *_DECLARED.values()} for path in paths}
        self._left = LOOKED_AT

    def look(self, event: Any) -> None:
        """Inspect an event; after LOOKED_AT events, do nothing."""
        if self._left > 0:
            self._left -= 1
            for path, seen in self._seen.items():
                value = find(event, path)
                if value is None:
                    self._null.add(path)
                value = None if value is ABSENT else value
                seen.add(sets.family_of(value))
                if value is not None:
                    self._possible[path] -= {
                        kind for kind in self._possible[path] if not self._converts(value, kind)
                    }

    def _converts(self, value: Any, kind: str) -> bool:
        try:
            conform(value, kind, ())  # type: ignore[arg-type]
        except NotificationError:
            return self._texts and kind == "string"
        return True

    def type(self, path: tuple[str, ...]) -> str | None:
        """The family of an attribute; None if its values have several families, if it has no
        values, or if the path begins with a variable, as x.price in `exists(lines, x -> x.price >
        5)`. See `misfits_of`.
        """
        families = {_FAMILIES[one] for one in self._seen.get(path, ()) if one in _FAMILIES}
        return families.pop() if len(families) == 1 else None

    def notes(self) -> Iterator[str]:
        """Yield one sentence for each attribute that is missing, or whose values don't fit the
        filters."""
        if self._left == LOOKED_AT:
            return
        count = LOOKED_AT - self._left
        events = "the event has" if count == 1 else f"the first {count:,} events have"
        for path in sorted(self._seen):
            if not any(family in _FAMILIES for family in self._seen[path]):
                found = "only null there" if path in self._null else "no such attribute"
                yield f"filters test {name_text(path)}, but {events} {found}"
        for one, ids in sorted(self._misfits().items(), key=lambda item: item[0].path):
            name, whose = name_text(one.path), _name_ids(ids)
            seen = self._seen[one.path]
            have = " and ".join(sorted({_NAMES[f] for f in seen if f in _NAMES}))
            kind = _TYPES.get(one.expected)
            can = kind in self._possible[one.path]
            hint = f"; {advise(one.path, kind)} converts the values" if kind and can else ""
            said = f"{one.function}({name})" if one.function else f"{name} with {one.expected}"
            verb = f"{whose} compare{'s' if len(ids) == 1 else ''} {said}"
            if one.function:
                verb = f"{whose} test{'s' if len(ids) == 1 else ''} {said}, which takes "
                verb += one.expected
            yield f"{verb}, but {events} {have} there, so these tests are unknown{hint}"

        yield from self._mixtures(events)

    def _mixtures(self, events: str) -> Iterator[str]:
        """Yield one sentence for each attribute with values of several types, unless the type does
        not matter to any filter."""
        typed = set().union(*(_typed_paths(one.form) for _, one in self._filters))
        for path in sorted(typed):
            kinds = {_NAMES[family]: family for family in self._seen[path] if family in _NAMES}
            if len(kinds) > 1:
                kind = _common_type(set(kinds.values()), self._possible[path])
                said = f"; {advise(path, kind)} converts all of them" if kind else ""
                yield (
                    f"{events} values of several types for {name_text(path)}: "
                    f"{' and '.join(sorted(kinds))}; a test passes only for its own type{said}"
                )

    def _misfits(self) -> dict[Misfit, list[int | str]]:
        found: dict[Misfit, list[int | str]] = {}
        for id_, filter_ in self._filters:
            for one in misfits_of(filter_.form, self):
                found.setdefault(one, []).append(id_)
        return found


def advise(path: tuple[str, ...], kind: str) -> str:
    """The options that declare one attribute, quoted for a shell. They include --others, because
    without it, filters could use no undeclared attribute."""
    return f"--types {shlex.quote(f'{name_text(path)}={kind}')} --others"


def _common_type(families: set[int], possible: set[str]) -> str | None:
    """A type that all values can be converted to: numbers may be written as text, for example."""
    rest = {_FAMILIES[one] for one in families} - {"string"}
    wanted = [_DECLARED.get(rest.pop(), "string")] if len(rest) == 1 else []
    return next((kind for kind in (*wanted, "string") if kind in possible), None)


def _typed_paths(form: Form) -> set[tuple[str, ...]]:
    """The attributes that a filter reads. Arguments of functions that accept any type are left out;
    such functions come from other dialects."""
    free = {
        arg.path
        for node in form.terms.values()
        if isinstance(node, Call) and FUNCTIONS[node.name].any_type
        for arg in node.args
        if isinstance(arg, Attribute)
    }
    return reads(form) - free


def _name_ids(ids: list[int | str]) -> str:
    """`filter 7`, or `3 filters (7, 8, 9)`."""
    if len(ids) == 1:
        return f"filter {ids[0]}"
    return f"{len(ids):,} filters ({list_some([str(id_) for id_ in ids])})"
