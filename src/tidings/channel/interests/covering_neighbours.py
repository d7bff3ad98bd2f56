"""The neighbours of a new filter: the nodes that cover it, and the nodes that it covers.

    compiled, plain    an index of boxes, which decides nearly all     (matching/placing/box_index)
    recent, plain      sketches; candidates are compared               (recent.py)
    wide, computing    an index of hulls; candidates are compared      (here)

All nodes above a node that covers the filter cover it too, and need no comparison. In the same way,
all nodes below a node that the filter covers need no comparison.

Comparisons have a budget of STEPS in each direction. Coverings that are not found within the budget
stay unknown, like those that `covers` does not find. Unknown coverings make tags longer, but no
subscriber misses a notification. Comparisons of plain filters with one box use almost none of the
budget.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from tidings.channel.interests.graph.node_graph import NodeGraph
from tidings.channel.interests.graph.reach import Reach
from tidings.filters import Filter
from tidings.filters.canonical import AMONG_OTHERS, Form, HullIndex, WorkBudget, covers_among

Array = npt.NDArray[Any]
STEPS = 100_000  # steps in each direction, of about a microsecond each
PARSING = 50  # parsing a compiled filter again is counted as this many steps
COMPARING = 8  # steps of the budget for one step of a comparison, which may merge sets
FEW = 64  # more candidates than this are sorted before they are compared


class HullFilters:
    """Wide and computing filters, which the indexes of boxes do not contain, by number."""

    def __init__(self) -> None:
        self.filters: dict[int, Filter] = {}
        self.index: HullIndex[int] = HullIndex()

    def add(self, number: int, filter_: Filter) -> None:
        self.filters[number] = filter_
        self.index.add(number, filter_.form)

    def discard(self, number: int) -> None:
        filter_ = self.filters.pop(number, None)
        if filter_ is not None:
            self.index.discard(number, filter_.form)


class Search:
    """Searches the graph in one direction, up or down, within a budget."""

    def __init__(
        self, graph: NodeGraph, form: Form, filter_at: Callable[[int], Filter], *, is_up: bool
    ) -> None:
        self.reach = Reach(graph, is_up=is_up)
        self._form = form
        self._filter_at = filter_at
        self._is_up = is_up
        self._left = STEPS

    def add(self, places: Array) -> None:
        """Add nodes that are known to be neighbours."""
        if len(places):
            self.reach.add(places)

    def compare(self, places: Iterable[int], cost: int = 0) -> None:
        """Compare the filter with the given nodes, and add those that are neighbours. Each
        comparison costs at least `cost` steps."""
        found = [place for place in places if place not in self.reach]
        if len(found) > FEW:  # cheapest first, so that as many as possible fit into the budget
            found.sort(key=lambda place: self._filter_at(place).form.weight if not cost else 0)
        for place in found:
            if self._left < 0:
                return
            if place not in self.reach:
                self._left -= cost
                if self._covers(self._filter_at(place).form):
                    self.reach.add(np.array([place]))

    def _covers(self, other: Form) -> bool:
        outer, inner = (other, self._form) if self._is_up else (self._form, other)
        effort = WorkBudget(AMONG_OTHERS)
        pairs = len(outer.boxes or ()) * len(inner.boxes or ())
        self._left -= 1 + len(outer.hull) // 16 + pairs // 8
        answer = covers_among(outer, inner, effort)
        self._left -= COMPARING * (AMONG_OTHERS - effort.left)
        return answer
