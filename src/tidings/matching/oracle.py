"""The naive matcher: it evaluates every filter on every event by the reference semantics.

The naive matcher shares only the parser with the engine, and tests compare the engine with it. The
naive matcher is slow and simple; use it when in doubt about a match. In this repository, only tests
use it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from tidings.filters import Filter, parse
from tidings.model import Event


class Oracle:
    """Filters by id; a match evaluates all of them."""

    def __init__(self) -> None:
        self.filters: dict[Hashable, Filter] = {}

    def add(self, id_: Hashable, filter_: Filter | str) -> None:
        self.filters[id_] = parse(filter_) if isinstance(filter_, str) else filter_

    def add_many(self, pairs: Iterable[tuple[Hashable, Filter | str]]) -> None:
        for id_, filter_ in pairs:
            self.add(id_, filter_)

    def remove(self, id_: Hashable) -> None:
        del self.filters[id_]

    def match(self, event: Event) -> list[Hashable]:
        return [id_ for id_, filter_ in self.filters.items() if filter_.matches(event)]
