"""Counts the events that match each subscription, and keeps the first such event as a sample.

Events are matched in chunks, each with one call of the matcher."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
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
    parts: dict[str, list[int]] = {}
    """For each named part that was true, the events; only if parts were asked for."""

    @property
    def sample_text(self) -> str:
        """The attributes that the filter reads, with their values in the first event."""
        return describe_values(self.filter, self.sample)

    @property
    def part_counts(self) -> str:
        """For each named part of the filter, the number of events in which it was true."""
        return ", ".join(f"{name} {len(self.parts.get(name, ())):,}" for name in self.filter.parts)


class MatchedEvent(msgspec.Struct, frozen=True):
    """An event, the subscriptions that it matches, and their named parts that are true."""

    index: int
    event: Mapping[str, Any]
    places: list[int]
    parts: dict[int, list[str]]


class MatchCounts:
    """Subscriptions in order of arrival, each with its counts, and one matcher for all of them."""

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

    def match_chunk(
        self, rows: Sequence[tuple[int, Mapping[str, Any]]], parts: bool = False
    ) -> Iterator[MatchedEvent]:
        """Match many events at once. The subscriptions of an event are in ascending order."""
        found = self.matcher.match_many([event for _, event in rows], parts=parts)
        named = found.parts if parts else [{}] * len(rows)
        for (index, event), ids, names in zip(rows, found.by_event, named, strict=True):
            yield MatchedEvent(index, event, sorted(ids), names)  # type: ignore[arg-type]

    def count(self, matched: MatchedEvent) -> None:
        """Count an event for each subscription that it matches."""
        for place in matched.places:
            tally = self.subscriptions[place]
            if not tally.count:
                tally.first, tally.sample = matched.index, matched.event
            tally.count += 1
            for name in matched.parts.get(place, ()):
                tally.parts.setdefault(name, []).append(matched.index)

    def count_batch(self, start: int, batch: Any) -> int:
        """Count the rows of a record batch whose first row is event `start`; return the number of
        matches."""
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
        """How many subscriptions share their node with another subscription."""
        places = Counter(graph.node(tally.filter) for tally in self.subscriptions)
        return sum(count for count in places.values() if count > 1)
