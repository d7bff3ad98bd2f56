"""The lowest nodes that match a notification, or each of many."""

from __future__ import annotations

from collections.abc import Iterable, Set
from typing import Any

import numpy as np
import numpy.typing as npt

from tidings.channel.interests.nodes import Nodes
from tidings.matching.covering import bounds
from tidings.matching.rank_space import as_batch
from tidings.model import Event, NotificationError

Array = npt.NDArray[Any]
FEW = 16  # up to this many notifications are matched one by one


class Tagging:
    """Tags notifications with nodes. `compute` comes first, because it may take too long."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes

    def compute(self, event: Event, size: int) -> list[int]:
        """The numbers of the computing filters that match a notification of `size` bytes."""
        return self._nodes.computing.match(event, size)

    def tag(self, event: Event, computed: Iterable[int]) -> list[int]:
        """The lowest nodes, given the computing ones that match."""
        nodes = self._nodes
        graph = nodes.graph
        found: list[Any] = [graph.need(number) for number in computed]
        for matcher, has_places in nodes.matchers():
            ids: list[Any] = matcher.match(event)
            found += ids if has_places else graph.added_places(ids)
        return graph.lowest(found)

    def tag_many(
        self, events: list[Event], computed: list[list[int]], without: Set[int]
    ) -> tuple[Array, Array]:
        """(starts, nodes): the lowest nodes of each event, ascending, and none for the positions
        `without`. Events that do not fit into columns, because an attribute has values of several
        types, are matched one by one."""
        graph = self._nodes.graph
        if len(events) > FEW:
            try:
                starts, places = self._match_batch(events, computed, without)
            except NotificationError:
                pass
            else:
                starts, places = graph.lowest_lists(starts, places)
                numbers = graph.numbers[places]
                row = np.repeat(np.arange(len(events)), np.diff(starts))
                return starts, numbers[np.lexsort((numbers, row))]
        tags = [
            [] if at in without else sorted(self.tag(event, known))
            for at, (event, known) in enumerate(zip(events, computed, strict=True))
        ]
        sizes = np.array([len(tag) for tag in tags], np.int64)
        return bounds(sizes), np.array([node for tag in tags for node in tag], np.int64)

    def _match_batch(
        self, events: list[Event], computed: list[list[int]], without: Set[int]
    ) -> tuple[Array, Array]:
        """(starts, places) of all matches."""
        matchers, graph = list(self._nodes.matchers()), self._nodes.graph
        nulls = frozenset[tuple[str, ...]]().union(*(one.null_paths() for one, _ in matchers))
        batch = as_batch(events, None, nulls)
        known = [graph.need(number) for numbers in computed for number in numbers]
        rows = [np.repeat(np.arange(len(events)), [len(numbers) for numbers in computed])]
        places = [np.array(known, np.int64)]
        for matcher, has_places in matchers:
            row, found = matcher.match_pairs(batch)
            rows.append(row)
            places.append(found if has_places else graph.translate(found))
        row, place = np.concatenate(rows), np.concatenate(places)
        if without:
            kept = ~np.isin(row, list(without))
            row, place = row[kept], place[kept]
        order = np.argsort(row, kind="stable")
        return bounds(np.bincount(row, minlength=len(events))), place[order]
