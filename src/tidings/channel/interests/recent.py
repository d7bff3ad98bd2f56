"""Filters that were placed since the last compilation, as objects.

When a compilation begins, a new generation of filters begins as well. When the compilation is done,
the earlier generations are dropped. Because of the generations, no filter has to be inserted twice.

Memory: about 5 KB per `mixed` filter.
"""

from __future__ import annotations

from tidings.channel.interests.index_kinds import PLAIN, RECENT_ENGINE, WIDE, kind_of
from tidings.filters import Filter, parse
from tidings.matching import Matcher
from tidings.matching.placing import Question, Sketches


class Recent:
    """One generation of filters, by number. This class is not thread-safe: callers must hold a
    lock."""

    def __init__(self) -> None:
        self.filters: dict[int, Filter] = {}
        self.texts: dict[int, str] = {}
        self.unread: dict[int, bytes] = {}
        """Plain filters that are not read yet, and so never match: their identities."""
        self.matcher = Matcher(engine=RECENT_ENGINE)
        """The matcher of plain and wide filters; its ids are the numbers of nodes."""
        self._by_key: dict[bytes, list[int]] = {}
        self._sketches = Sketches()
        self._owners: list[int] = []  # numbers of plain filters, in the order of their sketches

    def __len__(self) -> int:
        return len(self.texts)

    def __contains__(self, number: int) -> bool:
        return number in self.texts

    def key(self, number: int) -> bytes:
        """The identity of a filter."""
        found = self.unread.get(number)
        return self.filters[number].key if found is None else found

    def add_unread(self, number: int, text: str, key: bytes) -> None:
        """Add a filter that will be read later."""
        self.texts[number], self.unread[number] = text, key
        self._by_key.setdefault(key, []).append(number)

    def read(self, number: int, filter_: Filter) -> None:
        """Replace an unread filter with the filter that was read."""
        text, key = self.texts[number], self.unread.pop(number)
        self._forget_key(number, key)
        self.add(number, text, filter_, None)

    def give_up(self, number: int) -> None:
        """Keep a filter that can't be read; it matches nothing."""
        self.filters[number] = parse("FALSE")
        self._forget_key(number, self.unread.pop(number))
        self._by_key.setdefault(self.filters[number].key, []).append(number)

    def _forget_key(self, number: int, key: bytes) -> None:
        same = self._by_key[key]
        same.remove(number)
        if not same:
            del self._by_key[key]

    def add(self, number: int, text: str, filter_: Filter, question: Question | None) -> None:
        """Add a filter; `question` was used to find its neighbours, if not None."""
        kind = kind_of(filter_.form)
        if kind == PLAIN:  # if adding the filter fails, its sketch does no harm: it is never found
            known = None if question is None else question.known
            self._sketches.add(len(self._owners), filter_.form, known)
            self._owners.append(number)
        if kind <= WIDE:
            self.matcher.add(number, filter_)
        self.filters[number], self.texts[number] = filter_, text
        self._by_key.setdefault(filter_.key, []).append(number)

    def remove(self, number: int) -> None:
        self._forget_key(number, self.key(number))
        del self.texts[number]
        if self.unread.pop(number, None) is not None:
            return
        filter_ = self.filters.pop(number)
        if kind_of(filter_.form) <= WIDE:
            self.matcher.remove(number)

    def numbers_of(self, key: bytes) -> list[int]:
        """The numbers of the filters with an identity."""
        return self._by_key.get(key, [])

    def around(self, question: Question) -> tuple[list[int], list[int]]:
        """Plain filters that may cover the new filter, and those that the new one may cover."""
        above, below = self._sketches.around(question)
        return self._there(above), self._there(below)

    def _there(self, found: list[int]) -> list[int]:
        owners, filters = self._owners, self.filters
        return [number for owner in found if (number := owners[owner]) in filters]
