"""The matches of many events at once, by event and by filter, and the named parts that matched.

    events ──one call of the kernels──> pairs (event, slot) ──> Matches
    filters with names among them ──> a second matcher of their parts ──> names that are true

Each part is a condition, so the matcher treats it like a filter. For a batch, a second matcher
finds the parts that are true. The parts of a filter are added to it when the filter matches for the
first time. For a single event, parts are evaluated by the reference semantics.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Protocol

import msgspec
import numpy as np
import numpy.typing as npt

from tidings.filters import Filter
from tidings.filters.language import may_have_names
from tidings.model import Event

Array = npt.NDArray[Any]
MOST_KNOWN = 1 << 16  # the most filters whose parts are cached; then the cache is emptied
Parts = tuple[tuple[str, int], ...]  # the name and the number of each part of a filter


class Matches(msgspec.Struct, frozen=True, dict=True):
    """Which filters match which events of a request. `rows` and `ids` are the pairs, in the order
    of events; the number of an event is its position in the request."""

    count: int
    """The number of events in the request."""
    rows: Array
    ids: Sequence[Hashable]
    names: Sequence[list[str]] | None = None
    """For each pair, the names of the parts that are true; None if names were not asked for."""

    def __len__(self) -> int:
        """The number of pairs."""
        return len(self.rows)

    @cached_property
    def by_event(self) -> list[list[Hashable]]:
        """For each event, the ids of the filters that match it."""
        found: list[list[Hashable]] = [[] for _ in range(self.count)]
        for row, id_ in zip(self.rows.tolist(), self.ids, strict=True):
            found[row].append(id_)
        return found

    @cached_property
    def by_filter(self) -> dict[Hashable, list[int]]:
        """For each filter that matches an event, the ascending indexes of its events."""
        found: dict[Hashable, list[int]] = {}
        for row, id_ in zip(self.rows.tolist(), self.ids, strict=True):
            found.setdefault(id_, []).append(row)
        return found

    @cached_property
    def parts(self) -> list[dict[Hashable, list[str]]]:
        """For each event, the filters that match it, each with the names of its true parts. The
        list is empty unless the request asked for parts."""
        if self.names is None:
            return []
        found: list[dict[Hashable, list[str]]] = [{} for _ in range(self.count)]
        for row, id_, names in zip(self.rows.tolist(), self.ids, self.names, strict=True):
            found[row][id_] = names
        return found


class PartMatcher(Protocol):
    """What this module needs of the matcher that matches parts."""

    def add(self, id: Hashable, filter: Filter) -> None: ...  # noqa: A002
    def match_pairs(self, events: Any) -> tuple[Array, Array]: ...


class PartIndex:
    """The parts of filters, with each distinct condition only once, and a matcher for them."""

    def __init__(
        self, parse: Callable[[str], Filter], make_matcher: Callable[[], PartMatcher]
    ) -> None:
        self._parse = parse
        self._make_matcher = make_matcher
        self._lock = threading.Lock()
        self._clear()

    def _clear(self) -> None:
        self._known: dict[str, tuple[Filter, Parts]] = {}
        self._numbers: dict[bytes, int] = {}  # the number of each part, by its identity
        self._matcher: PartMatcher | None = None

    def true_parts(self, given: Filter | str, event: Event) -> list[str]:
        """The names of the parts of a filter that are true on one event, by the reference
        semantics."""
        if isinstance(given, Filter):
            return given.matched_parts(event)
        if not may_have_names(given):
            return []
        with self._lock:
            filter_, _ = self._look_up(given)
        return filter_.matched_parts(event)

    def names_of_pairs(
        self, rows: Array, slots: Array, texts: Mapping[int, Filter | str], events: Any
    ) -> list[list[str]]:
        """For each pair of an event and a filter, the names of the parts that are true. `texts`
        contains the filter of each slot."""
        with self._lock:
            if len(self._known) > MOST_KNOWN:
                self._clear()
            named: dict[int, Parts] = {}
            for slot, given in texts.items():
                parts = self._parts_of(given)
                if parts:
                    named[slot] = parts
            matcher = self._matcher
        names: list[list[str]] = [[] for _ in range(len(rows))]
        if not named or matcher is None:
            return names
        true_rows, true_parts = matcher.match_pairs(events)
        true = set(zip(true_rows.tolist(), true_parts.tolist(), strict=True))
        some = np.flatnonzero(np.isin(slots, np.fromiter(named, np.int64, len(named))))
        for at in some.tolist():
            row, parts = int(rows[at]), named[int(slots[at])]
            names[at] = [name for name, number in parts if (row, number) in true]
        return names

    def _parts_of(self, given: Filter | str) -> Parts:
        if isinstance(given, str):
            return self._look_up(given)[1] if may_have_names(given) else ()
        return self._look_up(given.sql(), given)[1] if given.parts else ()

    def _look_up(self, text: str, filter_: Filter | None = None) -> tuple[Filter, Parts]:
        found = self._known.get(text)
        if found is None:
            filter_ = self._parse(text) if filter_ is None else filter_
            parts = tuple((name, self._number(part)) for name, part in filter_.parts.items())
            found = self._known[text] = filter_, parts
        return found

    def _number(self, part: Filter) -> int:
        number = self._numbers.get(part.key)
        if number is None:
            number = self._numbers[part.key] = len(self._numbers)
            if self._matcher is None:
                self._matcher = self._make_matcher()
            self._matcher.add(number, part)
        return number


def gather_pairs(found: Iterable[Mapping[Hashable, list[str]]]) -> Matches:
    """The matches of events, each of which was matched by itself."""
    each = list(found)
    counts = [len(one) for one in each]
    rows = np.repeat(np.arange(len(each)), counts)
    ids = [id_ for one in each for id_ in one]
    return Matches(len(each), rows, ids, [names for one in each for names in one.values()])
