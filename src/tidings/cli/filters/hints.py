"""Notes on filters and events that don't fit each other, to explain why nothing matched.

Types are not declared by default, and a comparison with a value of another family is unknown. So a
typo in a name causes no error, and nothing matches. A date that is a string in one file and a date
in the other has the same effect. AttributeWatch finds such attributes in the first events.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from typing import Any

from tidings import Filter
from tidings.filters.canonical import Form, Node, Test, reads
from tidings.filters.language import FUNCTIONS, Attribute, Call, name_text, read
from tidings.filters.values import sets

LOOKED_AT = 1_000  # events that are inspected

_NAMES = {
    sets.BOOLEAN: "booleans", sets.NUMBER: "numbers", sets.STRING: "strings",
    sets.TIME: "dates or timestamps", sets.OTHER: "lists or structs",
}  # fmt: skip
_TYPES = {sets.BOOLEAN: "boolean", sets.NUMBER: "double", sets.STRING: "string",
          sets.TIME: "timestamp"}  # fmt: skip


class AttributeWatch:
    """Collects the families of values that filters expect and that the first events have."""

    def __init__(self, filters: Iterable[Filter]) -> None:
        self._wanted: dict[tuple[str, ...], set[int]] = {}
        self._any_type: set[tuple[str, ...]] = set()
        for one in filters:
            self._any_type.update(_untyped_attributes(one.form))
            for path in reads(one.form):
                self._wanted.setdefault(path, set())
            for path, families in _compared_families(one.form):
                self._wanted[path] |= families
        self._seen: dict[tuple[str, ...], set[int]] = {path: set() for path in self._wanted}
        self._left = LOOKED_AT

    def look(self, event: Any) -> None:
        """Inspect an event; after LOOKED_AT events, do nothing."""
        if self._left > 0:
            self._left -= 1
            for path, seen in self._seen.items():
                seen.add(sets.family_of(read(event, path)))

    def notes(self) -> Iterator[str]:
        """Yield one sentence for each attribute that is missing or has other values."""
        if self._left == LOOKED_AT:
            return
        count = LOOKED_AT - self._left
        events = "the event has" if count == 1 else f"the first {count:,} events have"
        for path in sorted(self._wanted):
            name, wanted = name_text(path), self._wanted[path]
            seen = self._seen[path] - {sets.ABSENT}
            if not seen:
                yield f"filters test {name}, but {events} no such attribute"
            elif wanted and not wanted & seen and path not in self._any_type:
                have, want = _list_families(seen), _list_families(wanted)
                kind = next((_TYPES[f] for f in sorted(wanted) if f in _TYPES), "string")
                yield (
                    f"filters compare {name} with {want}, but {events} {have} there, so these "
                    f"tests are unknown; {advise(path, kind)} converts the values"
                )
            elif len(_list_families(seen).split(" and ")) > 1 and path not in self._any_type:
                yield (
                    f"{events} values of several types for {name}: {_list_families(seen)}; a test "
                    f"sees only those of its own type; {advise(path, _common_type(seen))} converts "
                    "all of them"
                )


def advise(path: tuple[str, ...], kind: str) -> str:
    """The options that declare one attribute, as a shell reads them. Without --others, filters
    could use no other attribute."""
    return f"--types {shlex.quote(f'{name_text(path)}={kind}')} --others"


def _common_type(families: set[int]) -> str:
    """A type that all values can be converted to: numbers may be written as text, for example."""
    rest = families - {sets.ABSENT, sets.STRING}
    return _TYPES.get(min(rest, default=sets.STRING), "string") if len(rest) == 1 else "string"


def _untyped_attributes(form: Form) -> Iterator[tuple[str, ...]]:
    """Attributes that filters of other dialects read regardless of type."""
    for node in form.terms.values():
        if isinstance(node, Call) and FUNCTIONS[node.name].any_type:
            yield from (arg.path for arg in node.args if isinstance(arg, Attribute))


def _list_families(families: set[int]) -> str:
    return " and ".join(_NAMES[family] for family in sorted(families) if family in _NAMES)


def _compared_families(form: Form) -> Iterator[tuple[tuple[str, ...], set[int]]]:
    """Yield each attribute with the families of the values that it is compared with."""
    for term, values in _tests(form):
        node = form.terms[term]
        if isinstance(node, Attribute):
            families = {cut[0] for cut in values.cuts if len(cut) == 3}
            yield node.path, families


def _tests(form: Form) -> Iterator[tuple[str, sets.ValueSet]]:
    if form.boxes is not None:
        for box in form.boxes:
            yield from box.items()
    elif form.tree is not None:
        yield from _tests_of(form.tree)


def _tests_of(node: Node) -> Iterator[tuple[str, sets.ValueSet]]:
    if isinstance(node, Test):
        yield node.term, node.values
    else:
        for item in node.items:
            yield from _tests_of(item)
