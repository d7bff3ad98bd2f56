"""Reads the terms of an event from the attributes that have its place, time, tags and person."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from tidings.model import ABSENT, AttributesError, Event
from tidings.relations.semantic import Context, NameLookup, SemanticStore, Term

MOST_REMEMBERED = 65_536  # the most values whose terms are cached
LONGEST_REMEMBERED = 200  # the most characters of a value whose terms are cached


class Reading(msgspec.Struct, frozen=True):
    """The names of the attributes from which terms are read. `coordinates` are latitude, longitude
    and perhaps altitude. They are used only for an event that names no known place. The value of
    `tag` may be a list. The words of `text` become tags."""

    place: str | None = None
    coordinates: tuple[str, ...] = ()
    time: str | None = None
    tag: str | None = None
    text: str | None = None
    person: str | None = None

    def __post_init__(self) -> None:
        if len(self.coordinates) not in (0, 2, 3):
            raise AttributesError(
                f"found {len(self.coordinates)} attributes of coordinates, expected latitude, "
                "longitude and, optionally, altitude"
            )
        if not self.named_attributes() and not self.coordinates and self.text is None:
            raise AttributesError("found no attribute of a context, expected at least one")

    def named_attributes(self) -> dict[str, Context]:
        """The attributes that contain names, each with its context."""
        given: tuple[tuple[str | None, Context], ...] = (
            (self.place, "place"), (self.time, "time"), (self.tag, "tag"), (self.person, "person")
        )  # fmt: skip
        return {name: context for name, context in given if name is not None}

    def attributes(self) -> frozenset[str]:
        """All attributes that are read from an event."""
        text = () if self.text is None else (self.text,)
        return frozenset((*self.named_attributes(), *self.coordinates, *text))


class TermReader:
    """Reads the terms of events. The terms of short strings are kept in a cache."""

    def __init__(
        self, semantic: SemanticStore, reading: Reading, asking: NameLookup | None = None
    ) -> None:
        """`asking` asks a dictionary about the names that the store lacks."""
        self.semantic = semantic
        self.reading = reading
        self._asking = asking
        self._named = tuple(reading.named_attributes().items())
        self._terms: dict[tuple[Context, Any], Term | None] = {}

    def terms(self, event: Event) -> tuple[Term, ...]:
        """The distinct terms of an event."""
        found: dict[Term, None] = {}
        for context, value in self.values(event):
            term = self.term(context, value)
            if term is not None:
                found[term] = None
        reading = self.reading
        if reading.coordinates and not self._has_known_place(found):
            term = self.semantic.term("place", self._coordinates(event))
            if term is not None:
                found[term] = None
        if reading.text is not None and isinstance(event.get(reading.text), str):
            words = self.semantic.tags.tags_of_text(event[reading.text])
            found.update(dict.fromkeys(Term("tag", word) for word in words))
        return tuple(found)

    def values(self, event: Event) -> Iterator[tuple[Context, Any]]:
        """The values of attributes that contain names. The elements of a list are yielded one by
        one."""
        for name, context in self._named:
            value = event.get(name)
            if isinstance(value, (list, tuple)):
                for one in value:
                    yield context, one
            elif value is not None:
                yield context, value

    def term(self, context: Context, value: Any) -> Term | None:
        """The term of one value."""
        if type(value) is not str or len(value) > LONGEST_REMEMBERED:
            return self.semantic.term(context, value)
        known = self._terms.get((context, value), self)
        if known is not self:
            return known  # type: ignore[return-value]
        if len(self._terms) >= MOST_REMEMBERED:
            self._terms.clear()
        term = self._terms[context, value] = self.semantic.term(context, value)
        if self._asking is not None and term is not None:
            self._asking.note(term, value)
        return term

    def forget(self) -> None:
        """Empty the cache; needed when the semantic store has grown."""
        self._terms.clear()

    def _has_known_place(self, terms: dict[Term, None]) -> bool:
        return any(one.context == "place" and self.semantic.knows(one) for one in terms)

    def _coordinates(self, event: Event) -> tuple[Any, ...]:
        return tuple(event.get(name) for name in self.reading.coordinates)


def values_of(reading: Reading) -> Callable[[Event], tuple[Any, ...] | None]:
    """A function from an event to the values that determine its terms, as a key for caches. The
    function returns None if the values are too long to be cached."""
    names = sorted(reading.attributes())

    def read(event: Event) -> tuple[Any, ...] | None:
        values = tuple([_hashable(event.get(name, ABSENT)) for name in names])
        return None if _TOO_LONG in values else values

    def read_one(event: Event) -> tuple[Any, ...] | None:
        value = event.get(name, ABSENT)
        if type(value) is str and len(value) <= LONGEST_REMEMBERED:
            return (value,)
        return read(event)

    name = names[0]
    return read_one if len(names) == 1 else read


_TOO_LONG = object()


def _hashable(value: Any) -> Any:
    """The value as part of a key: values with equal keys give equal terms. 1 and true have
    different keys."""
    if value is None or value is ABSENT:
        return value
    if isinstance(value, (str, list, tuple)) and len(value) > LONGEST_REMEMBERED:
        return _TOO_LONG
    if type(value) is str:
        return value
    if isinstance(value, (list, tuple)):
        inner = tuple(map(_hashable, value))
        return _TOO_LONG if _TOO_LONG in inner else (list, inner)
    if isinstance(value, Mapping):
        return Mapping  # because a mapping gives no term
    return type(value), value
