"""Counts the events that match each subscription, and keeps the first one as a sample."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from tidings import ContentGraph, Filter
from tidings.cli.common.arrow import rows_of
from tidings.cli.common.subscription_files import FileSubscription
from tidings.cli.filters.anatomy import describe_values

if TYPE_CHECKING:
    from tidings.matching import Matcher


class SubscriptionCount(msgspec.Struct):
    """The matches of one subscription: the number of events, and the first event."""

    subscription: FileSubscription
    filter: Filter
    count: int = 0
    first: int = -1
    sample: Mapping[str, Any] = {}

    @property
    def sample_text(self) -> str:
        """The attributes that the filter reads, with their values in the first event."""
        return describe_values(self.filter, self.sample)


class MatchCounts:
    """Subscriptions in order of arrival, with their counts, and a matcher for them."""

    def __init__(self) -> None:
        self.subscriptions: list[SubscriptionCount] = []
        self._matcher: Matcher | None = None
        self._loaded = 0  # the number of subscriptions that the matcher already has

    def subscribe(self, subscription: FileSubscription, filter_: Filter) -> None:
        self.subscriptions.append(SubscriptionCount(subscription, filter_))

    @property
    def matcher(self) -> Matcher:
        """A matcher of all filters; its ids are indexes into `subscriptions`."""
        if self._matcher is None:
            from tidings.matching import Matcher

            self._matcher = Matcher(background=False)
        if self._loaded < len(self.subscriptions):
            fresh = enumerate(self.subscriptions[self._loaded :], self._loaded)
            self._matcher.add_many((place, tally.filter) for place, tally in fresh)
            self._matcher.merge()  # compile the filters now, instead of testing them one by one
            self._loaded = len(self.subscriptions)
        return self._matcher

    def matching_places(self, event: Mapping[str, Any]) -> list[int]:
        """The indexes of the subscriptions that an event matches, in ascending order."""
        return sorted(self.matcher.match(event))  # type: ignore[arg-type]

    def count_event(self, index: int, event: Mapping[str, Any]) -> int:
        """Count an event for each subscription that it matches; return their number."""
        found = self.matching_places(event)
        for place in found:
            tally = self.subscriptions[place]
            if not tally.count:
                tally.first, tally.sample = index, event
            tally.count += 1
        return len(found)

    def count_batch(self, start: int, batch: Any) -> int:
        """Like `count_event`, for the rows of a record batch whose first row is event `start`."""
        import numpy as np

        rows, places = self.matcher.match_pairs(batch)
        found, first, counts = np.unique(
            places.astype(np.int64), return_index=True, return_counts=True
        )
        for place, at, count in zip(found.tolist(), first.tolist(), counts.tolist(), strict=True):
            tally = self.subscriptions[place]
            if not tally.count:
                row = int(rows[at])
                tally.first, tally.sample = start + row, next(rows_of(batch.slice(row, 1)))
            tally.count += count
        return len(rows)

    def rank(self) -> list[SubscriptionCount]:
        """The subscriptions that have matches; those with the most matches come first."""
        told = [tally for tally in self.subscriptions if tally.count]
        return sorted(told, key=lambda tally: -tally.count)

    def build_graph(self) -> ContentGraph:
        """The content graph of all filters."""
        return ContentGraph.build(tally.filter for tally in self.subscriptions)

    def count_sharing(self, graph: ContentGraph) -> int:
        """How many subscriptions share their node with another."""
        places = Counter(graph.node(tally.filter) for tally in self.subscriptions)
        return sum(count for count in places.values() if count > 1)
