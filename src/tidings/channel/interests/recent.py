"""Filters that were placed since the last compilation, as objects.

When a compilation begins, a new generation of filters begins as well. When the compilation is done,
the earlier generations are dropped. So no filter has to be inserted twice.

Memory: about 5 KB per `mixed` filter.
"""

from __future__ import annotations

from collections.abc import Iterator

from tidings.channel.interests.kinds import PLAIN, RECENT_ENGINE, WIDE, kind_of
from tidings.filters import Filter
from tidings.matching import Matcher
from tidings.matching.placing import Question, Sketches


class Recent:
    """One generation of filters, by number. Not thread-safe: callers must hold a lock."""

    def __init__(self) -> None:
        self.filters: dict[int, Filter] = {}
        self.texts: dict[int, str] = {}
        self.matcher = Matcher(engine=RECENT_ENGINE)
        """The matcher of plain and wide filters; its ids are the numbers of nodes."""
        self._by_key: dict[bytes, list[int]] = {}
        self._sketches = Sketches()
        self._owners: list[int] = []  # numbers of plain filters, in the order of their sketches

    def __len__(self) -> int:
        return len(self.filters)

    def __contains__(self, number: int) -> bool:
        return number in self.filters

    def add(self, number: int, text: str, filter_: Filter, question: Question | None) -> None:
        """Add a filter; `question` is the question that was asked about it."""
        kind = kind_of(filter_.form)
        if kind == PLAIN:  # a sketch that is left without a filter is never found
            known = None if question is None else question.known
            self._sketches.add(len(self._owners), filter_.form, known)
            self._owners.append(number)
        if kind <= WIDE:
            self.matcher.add(number, filter_)
        self.filters[number], self.texts[number] = filter_, text
        self._by_key.setdefault(filter_.key, []).append(number)

    def remove(self, number: int) -> None:
        filter_ = self.filters[number]
        if kind_of(filter_.form) <= WIDE:
            self.matcher.remove(number)
        del self.filters[number], self.texts[number]
        same = self._by_key[filter_.key]
        same.remove(number)
        if not same:
            del self._by_key[filter_.key]

    def numbers_of(self, key: bytes) -> list[int]:
        """The numbers of the filters with an identity."""
        return self._by_key.get(key, [])

    def above(self, question: Question) -> Iterator[int]:
        """Plain filters that may cover the new filter."""
        return self._there(self._sketches.above(question))

    def below(self, question: Question) -> Iterator[int]:
        """Plain filters that the new filter may cover."""
        return self._there(self._sketches.below(question))

    def _there(self, found: list[int]) -> Iterator[int]:
        owners, filters = self._owners, self.filters
        return (number for owner in found if (number := owners[owner]) in filters)
