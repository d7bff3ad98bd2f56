"""The merit of a message for a queue: how strongly it is related to earlier forwarded messages.

    message ──terms──> the sum of the merits of all nodes with related messages
    forwarded: terms, nodes ──note──> waits ──work──> learnt, when there is time

`note` queues a forwarded message; `work` learns from the queued messages. In the store, each node
of the content graph is a hop of its own. So the merit of a message is higher if the messages that
it is related to reached more nodes. The caller cancels ids in `store` when subscriptions end, and
ages the store.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Sequence

from tidings.relations.clusters import ClusterStore, StoreSettings
from tidings.relations.merit.postings import Postings
from tidings.relations.semantic import Growth, SemanticStore, Term, Weights

MOST_PENDING = 10_000  # at most this many messages wait to be learnt from; the oldest are dropped
MOST_HOPS = 8  # the most nodes that are learnt from one message


class ForwardedMerit:
    """Merits of messages. A message is admitted if the nodes that it reached represent enough
    subscriptions in total."""

    def __init__(
        self,
        semantic: SemanticStore,
        weights: Weights,
        settings: StoreSettings,
        count: Callable[[Hashable], int] = lambda _: 1,
    ) -> None:
        """`count` returns how many subscriptions a node represents now; 0 if all have ended."""
        self.store = ClusterStore(semantic, weights, settings)
        self._count = count
        self._postings = Postings(self.store, lambda _: None)
        self._pending: deque[tuple[tuple[Term, ...], tuple[Hashable, ...], float]]
        self._pending = deque(maxlen=MOST_PENDING)

    @property
    def pending(self) -> int:
        """How many forwarded messages still wait to be learnt from."""
        return len(self._pending)

    def of(self, terms: Sequence[Term]) -> float:
        """The merit of a message with these terms; 0 if no related message was forwarded."""
        return self._postings.total(terms) if terms else 0.0

    def take_growth(self, grown: Sequence[Growth]) -> None:
        """Index values again, because the semantic store has grown."""
        for old, new in grown:
            self.store.replace(old, new)
        self._postings.take_growth(grown)

    def note(self, terms: tuple[Term, ...], nodes: Sequence[Hashable], now: float) -> None:
        """Record that a message was forwarded to the subscribers of these nodes."""
        if terms and nodes:
            self._pending.append((terms, tuple(nodes), now))

    def work(self, most: int) -> int:
        """Learn from at most `most` messages, and return how many are left."""
        for _ in range(min(most, len(self._pending))):
            self._learn(*self._pending.popleft())
        return len(self._pending)

    def _learn(self, terms: tuple[Term, ...], nodes: tuple[Hashable, ...], now: float) -> None:
        counts = {node: count for node in nodes if (count := self._count(node))}
        for node in [*counts][:MOST_HOPS]:
            known = self.store.node(terms, node)
            if known is None:
                self.store.learn(terms, node, [node], now, sum(counts.values()))
            else:
                self.store.use([known], now, 1)
