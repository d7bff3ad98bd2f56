"""Who is told what: subscriptions, and a count and a sample of events for each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from tidings import ContentGraph, Filter
from tidings.cli.common.subscription_files import Subscription
from tidings.cli.filters.anatomy import values_read

if TYPE_CHECKING:
    from tidings.matching import Matcher


class Tally(msgspec.Struct):
    """What one subscription was told: how many events, and the first of them."""

    subscription: Subscription
    filter: Filter
    count: int = 0
    first: int = -1
    sample: Mapping[str, Any] = {}

    @property
    def sample_text(self) -> str:
        """The first event, as far as the filter looks at it."""
        return values_read(self.filter, self.sample)


class Ledger:
    """Subscriptions in the order they came, and the matcher that finds those an event matches."""

    def __init__(self) -> None:
        self.tallies: list[Tally] = []
        self._matcher: Matcher | None = None
        self._loaded = 0  # tallies that the matcher has

    def subscribe(self, subscription: Subscription, filter_: Filter) -> None:
        self.tallies.append(Tally(subscription, filter_))

    @property
    def matcher(self) -> Matcher:
        """Everyone's filter under their place in `tallies`."""
        if self._matcher is None:
            from tidings.matching import Matcher

            self._matcher = Matcher(background=False)
        if self._loaded < len(self.tallies):
            fresh = enumerate(self.tallies[self._loaded :], self._loaded)
            self._matcher.add_many((place, tally.filter) for place, tally in fresh)
            self._matcher.merge()  # compiled now, not searched one by one
            self._loaded = len(self.tallies)
        return self._matcher

    def told(self, event: Mapping[str, Any]) -> list[int]:
        """The places in `tallies` of the subscriptions that an event matches, in order."""
        return sorted(self.matcher.match(event))  # type: ignore[arg-type]

    def note(self, index: int, event: Mapping[str, Any]) -> int:
        """Tell everyone whose filter the event matches; how many that were."""
        found = self.told(event)
        for place in found:
            tally = self.tallies[place]
            if not tally.count:
                tally.first, tally.sample = index, event
            tally.count += 1
        return len(found)

    def note_batch(self, start: int, batch: Any) -> int:
        """The same for the rows of a record batch, the first of which is event `start`."""
        import numpy as np

        rows, places = self.matcher.match_pairs(batch)
        found, first, counts = np.unique(
            places.astype(np.int64), return_index=True, return_counts=True
        )
        for place, at, count in zip(found.tolist(), first.tolist(), counts.tolist(), strict=True):
            tally = self.tallies[place]
            if not tally.count:
                row = int(rows[at])
                tally.first, tally.sample = start + row, batch.slice(row, 1).to_pylist()[0]
            tally.count += count
        return len(rows)

    def ranked(self) -> list[Tally]:
        """Those that were told something, the most told first."""
        told = [tally for tally in self.tallies if tally.count]
        return sorted(told, key=lambda tally: -tally.count)

    def graph(self) -> ContentGraph:
        """The content graph of all filters."""
        return ContentGraph.build(tally.filter for tally in self.tallies)

    def sharing(self, graph: ContentGraph) -> int:
        """How many subscriptions have a node that is not theirs alone."""
        places = Counter(graph.node(tally.filter) for tally in self.tallies)
        return sum(count for count in places.values() if count > 1)
