"""External dictionaries, which describe names that the store does not know.

A dictionary is any callable that takes a context and a name, and returns an entry, or None if it
does not know the name either. A dictionary may call a service, so the store asks it only on
request, never during a search.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

import msgspec

from tidings.relations.semantic.term_values import Context, name_key


class Entry(msgspec.Struct, frozen=True):
    """The entry of a dictionary for a name. `inside` has broader names: for a city its country, for
    a tag the words with a broader meaning. The entry of a person may have `links`: the other
    person, and the kind of the link."""

    name: str
    inside: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    lat: float | None = None
    lon: float | None = None
    altitude: float = 0.0
    links: tuple[tuple[str, str], ...] = ()


class Dictionary(Protocol):
    def __call__(self, context: Context, name: str, /) -> Entry | None:
        """The entry for a name; None if the dictionary has none."""


def join_dictionaries(given: Mapping[Context, Dictionary]) -> Dictionary:
    """Several dictionaries as one: each is asked about the names of one context."""

    def ask(context: Context, name: str, /) -> Entry | None:
        found = given.get(context)
        return None if found is None else found(context, name)

    return ask


class TableDictionary:
    """A dictionary of the entries of a table, such as a file of airports."""

    def __init__(self, context: Context, entries: Iterable[Entry]) -> None:
        self._context = context
        self._entries: dict[str, Entry] = {}
        for entry in entries:
            for name in (entry.name, *entry.also):
                self._entries.setdefault(name_key(name), entry)

    def __call__(self, context: Context, name: str, /) -> Entry | None:
        return self._entries.get(name_key(name)) if context == self._context else None

    def __len__(self) -> int:
        return len(set(self._entries.values()))
