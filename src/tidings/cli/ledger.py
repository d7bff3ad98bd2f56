"""Who is told what: subscriptions on a content graph, and a count and a sample for each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from tidings import ContentGraph, Filter
from tidings.cli.anatomy import values_read
from tidings.cli.subscriptions import Subscription


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
    """Subscriptions in the order they came; equal filters share a node of the graph."""

    def __init__(self) -> None:
        self.graph = ContentGraph()
        self.tallies: list[Tally] = []
        self._at: dict[int, list[int]] = {}  # node -> places in tallies

    def subscribe(self, subscription: Subscription, filter_: Filter) -> None:
        node = self.graph.insert(filter_)
        self._at.setdefault(node.id, []).append(len(self.tallies))
        self.tallies.append(Tally(subscription, filter_))

    def told(self, event: Mapping[str, Any]) -> list[int]:
        """The places in `tallies` of the subscriptions that an event matches, in order."""
        found: list[int] = []
        for node in self.graph.matching(event):
            found += self._at[node.id]
        found.sort()
        return found

    def note(self, index: int, event: Mapping[str, Any]) -> int:
        """Tell everyone whose filter the event matches; how many that were."""
        found = self.told(event)
        for place in found:
            tally = self.tallies[place]
            if not tally.count:
                tally.first, tally.sample = index, event
            tally.count += 1
        return len(found)

    def ranked(self) -> list[Tally]:
        """Those that were told something, the most told first."""
        told = [tally for tally in self.tallies if tally.count]
        return sorted(told, key=lambda tally: -tally.count)

    @property
    def sharing(self) -> int:
        """How many subscriptions have a node that is not theirs alone."""
        return sum(len(places) for places in self._at.values() if len(places) > 1)
