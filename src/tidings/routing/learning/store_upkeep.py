"""The upkeep of a store: it forgets what was learnt for subscriptions that have ended, forgets
nodes that were not used for a while, and limits the number of clusters.

    changes of the graph ──noted──> catch_up, before each use ──> cancelled nodes leave the store
    work, when there is time ──> ageing; places and times are grouped again, step by step

All stores of a running node use this upkeep: the stores whose hops are neighbours (learning.py),
and the store whose hops are nodes of the content graph, which gives publications their merit
(channel/related).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator

from tidings.relations import ClusterStore
from tidings.routing.forwarding import GraphCaches, GraphChanges

AGINGS = 8  # a store ages this many times in the period for which it keeps an unused node


class Upkeep:
    """Keeps one store in step with the subscriptions of one state machine, and ages it. The ids in
    the store are nodes of the content graph."""

    def __init__(
        self,
        store: ClusterStore,
        caches: GraphCaches,
        is_wanted: Callable[[Hashable, Hashable], bool],
        now: float,
    ) -> None:
        """`is_wanted` says whether a hop of the store still wants a node of the content graph."""
        self._store = store
        self._is_wanted = is_wanted
        self._changes = caches.add(GraphChanges())
        self._aged = now
        self._tidying: Iterator[None] | None = None

    def catch_up(self) -> None:
        """Forget what was learnt for subscriptions that have ended. Cost: a look-up if nothing has
        changed."""
        if not self._changes:
            return
        store = self._store
        nodes: list[Hashable] = [*self._changes.nodes]
        if self._changes.everything:
            nodes = [*store.ids()]
        self._changes.forget()
        for node in nodes:
            gone = [hop for hop in store.hops_of(node) if not self._is_wanted(hop, node)]
            if gone:
                store.cancel(node, *gone)

    def check_all(self) -> None:
        """Make sure that all subscriptions are checked before the store is used again."""
        self._changes.clear()

    def age(self, now: float) -> None:
        """Forget the nodes that were not used for a while, unless this was done recently."""
        if now - self._aged > self._store.settings.keep / AGINGS:
            self._aged = now
            self._store.age(now)

    def tidy(self) -> bool:
        """Take one step, of less than a millisecond, to group places and times into few clusters;
        return False if nothing is left to do."""
        if self._tidying is None:
            if not self._store.elements.is_untidy:
                return False
            self._tidying = self._store.elements.tidy_slowly()
        try:
            next(self._tidying)
        except StopIteration:
            self._tidying = None
        return True
