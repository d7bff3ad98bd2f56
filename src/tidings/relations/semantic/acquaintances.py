"""People and their links: family, friend, classmate, colleague, or other kinds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tidings.model import AttributesError
from tidings.relations.semantic.term_values import name_key


class People:
    """A graph of people. A person is also found by nicknames. Only direct links count: a
    classmate's friend is not related."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._links: dict[str, dict[str, str]] = {}

    def add(self, name: str, also: Iterable[str] = ()) -> str:
        """Add a person with nicknames."""
        also = list(also)
        for one in (name, *also):
            if not name_key(one):
                raise AttributesError("found a person without a name, expected a name")
            if name_key(one) in self._names:
                raise AttributesError(f"{name}: found the name '{one}' twice, expected it once")
        for one in (name, *also):
            self._names[name_key(one)] = name
        self._links[name] = {}
        return name

    def link(self, one: str, other: str, kind: str) -> None:
        """Link two people in both directions; a second link replaces the first."""
        ends = [self.find(one), self.find(other)]
        for given, found in zip((one, other), ends, strict=True):
            if found is None:
                raise AttributesError(f"found '{given}' in a link, expected a known person")
        first, second = map(str, ends)
        if first == second:
            raise AttributesError(f"found a link from '{first}' to '{first}', expected two people")
        self._links[first][second] = self._links[second][first] = kind

    def find(self, name: str) -> str | None:
        return self._names.get(name_key(name))

    def links_of(self, person: str) -> Mapping[str, str]:
        """The people one link away, each with the kind of the link."""
        return self._links.get(person, {})

    def __len__(self) -> int:
        return len(self._links)

    def kinds(self) -> set[str]:
        return {kind for links in self._links.values() for kind in links.values()}
