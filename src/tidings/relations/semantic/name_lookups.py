"""The names that a semantic store lacks, until a dictionary is asked about them.

    name in a notification or a filter ──note──> waits ──work, when there is time──> dictionary
                                                             │
    every index that has the value of the name <──take_growth┘   the store has grown

Noting a name takes one lookup in a hash table. A dictionary is asked about each name once. What is
learnt under the old value of a name moves to its new value.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol
from weakref import WeakSet

from tidings.relations.semantic.dictionary import Dictionary, Entry
from tidings.relations.semantic.semantic_store import SemanticStore
from tidings.relations.semantic.term_values import Context, Place, Term, name_key

MOST_WAITING = 1_000  # the most names that wait; a further name is noted when it occurs again
MOST_ASKED = 10_000  # the most names whose answers are remembered
BATCH = 16  # the most names about which one call to `work` asks
LONGEST = 200  # the most characters of a name
Key = tuple[Context, str]


class Growth(NamedTuple):
    """A change to a name: it has another value than before, or other values above its value."""

    old: Term
    new: Term


class Growing(Protocol):
    """An index over values of the store."""

    def take_growth(self, grown: Sequence[Growth]) -> None:
        """Index values again, because the semantic store has grown."""


class NameLookup:
    """Asks one dictionary on behalf of one semantic store."""

    def __init__(self, semantic: SemanticStore, dictionary: Dictionary) -> None:
        self._semantic = semantic
        self._dictionary = dictionary
        self._waiting: dict[Key, tuple[Term, str]] = {}
        self._unknown: dict[Key, Term] = {}  # names without an entry, with their values
        self._renewed: dict[Term, Term] = {}
        self._indexes: WeakSet[Growing] = WeakSet()

    def tell(self, index: Growing) -> None:
        """Tell an index whenever the store has grown, as long as the index exists."""
        self._indexes.add(index)

    @property
    def pending(self) -> int:
        """How many names wait."""
        return len(self._waiting)

    def note(self, term: Term, name: str) -> None:
        """Note a name with its value, unless the store knows the value. May be called in any
        thread."""
        if term.context == "time" or len(name) > LONGEST or self._has(term):
            return
        key = term.context, name_key(name)
        if key[1] and key not in self._unknown and len(self._waiting) < MOST_WAITING:
            self._waiting.setdefault(key, (term, name))

    def renew(self, terms: Iterable[Term]) -> tuple[Term, ...]:
        """The terms of a context that another node wrote, with the values that their names now have
        here. Notes the names that this store lacks."""
        found: dict[Term, None] = {}
        for term in terms:
            now = self._renewed.get(term, term)
            found[now] = None
            if now.context != "time":
                self.note(now, now.value.name if isinstance(now.value, Place) else str(now.value))
        return tuple(found)

    def work(self) -> bool:
        """Ask about a few names; return False if none are left. If the store has grown, each index
        is told, with one call for all names."""
        grown: dict[Growth, None] = {}
        for key in [*self._waiting][:BATCH]:
            old, name = self._waiting.pop(key)
            grown.update(dict.fromkeys(self._ask(key, old, name)))
        for one in grown:
            if one.old != one.new:
                while len(self._renewed) >= MOST_ASKED:
                    del self._renewed[next(iter(self._renewed))]
                self._renewed[one.old] = one.new
        if grown:
            for index in [*self._indexes]:
                index.take_growth([*grown])
        return bool(self._waiting)

    def _ask(self, key: Key, old: Term, name: str) -> list[Growth]:
        """Ask about one name; return this name and others that have a new meaning."""
        seen: list[Entry] = []

        def ask(context: Context, asked: str, /) -> Entry | None:
            entry = self._dictionary(context, asked)
            if entry is not None:
                seen.append(entry)
            return entry

        known = self._semantic.term(key[0], name)  # added with another name?
        if known is None or not self._has(known):
            known = self._semantic.grow(key[0], name, ask)
        self._unknown.pop(key, None)
        if known is None:
            while len(self._unknown) >= MOST_ASKED:
                del self._unknown[next(iter(self._unknown))]
            self._unknown[key] = old
        found = [] if known is None else [Growth(old, known)]
        for entry in seen:
            others = (entry.name, *entry.also, *entry.inside, *(one for one, _ in entry.links))
            for other in map(name_key, others):
                before = self._unknown.pop((key[0], other), None)
                after = self._semantic.term(key[0], other)
                if before is not None and after is not None:
                    found.append(Growth(before, after))
        return found

    def _has(self, term: Term) -> bool:
        """Whether the value of a term is in a tree, or in the graph of people."""
        context, value = term
        if isinstance(value, Place):  # coordinates alone have no name
            return not value.name or value.name in self._semantic.places.tree
        return context == "time" or self._semantic.knows(term)
