"""A tree of names that can grow: each name with the broader names above it.

    Illinois        ancestors of Chicago within 2 links: Illinois (1), United States (2)
    `-- Chicago     path from Chicago to Evanston: none, because neither is above the other

A name may have several parents, as in a thesaurus; there are no cycles. Names are looked up by
`name_key`; a name is also found by its other names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tidings.model import AttributesError
from tidings.relations.semantic.term_values import name_key


class NameTree:
    """Names, their parents and their other names."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}  # the key of a name, or of another name for it -> the name
        self._parents: dict[str, tuple[str, ...]] = {}
        self._children: dict[str, list[str]] = {}

    def add(self, name: str, parents: Iterable[str] = (), also: Iterable[str] = ()) -> str:
        """Add a name under parents that the tree already has, and return the name."""
        if not name_key(name):
            raise AttributesError("found an empty name, expected a name")
        above = []
        for parent in parents:
            known = self.find(parent)
            if known is None:
                raise AttributesError(
                    f"{name}: found the parent '{parent}', expected a name that is already known"
                )
            above.append(known)
        for one in (name, *also):
            if name_key(one) in self._names:
                raise AttributesError(f"{name}: found the name '{one}' twice, expected it once")
        for one in (name, *also):
            self._names[name_key(one)] = name
        self._parents[name] = tuple(dict.fromkeys(above))
        self._children[name] = []
        for parent in self._parents[name]:
            self._children[parent].append(name)
        return name

    def find(self, name: str) -> str | None:
        """The name that the tree has for a given name, which may be another name for it; None if
        the tree has none."""
        return self._names.get(name_key(name))

    def __contains__(self, name: str) -> bool:
        return name_key(name) in self._names

    def __len__(self) -> int:
        return len(self._parents)

    def __iter__(self) -> Iterator[str]:
        return iter(self._parents)

    def parents(self, name: str) -> tuple[str, ...]:
        return self._parents.get(name, ())

    def ancestors(self, name: str, links: int) -> dict[str, int]:
        """The names above a name, up to `links` links away, each with the number of links to it."""
        return _walk(self._parents, name, links)

    def descendants(self, name: str, links: int) -> dict[str, int]:
        """The names below a name, up to `links` links away, each with the number of links to it."""
        return _walk(self._children, name, links)

    def path_length(self, below: str, above: str) -> int | None:
        """The number of links from a name up to another; None if the other is not above it.
        Only tests call this."""
        if below == above:
            return 0
        return self.ancestors(below, len(self)).get(above)


def _walk(edges: dict[str, tuple[str, ...]] | dict[str, list[str]], name: str, links: int
          ) -> dict[str, int]:  # fmt: skip
    found: dict[str, int] = {}
    level = [name]
    for distance in range(1, links + 1):
        level = [one for at in level for one in edges.get(at, ()) if one not in found]
        found.update(dict.fromkeys(level, distance))
        if not level:
            break
    return found
