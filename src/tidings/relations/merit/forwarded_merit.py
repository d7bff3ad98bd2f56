"""The merit of a message for a queue: how strongly it is related to earlier forwarded messages.

    message ──terms──> merits of all nodes that it reached before, added up
    forwarded: terms, nodes ──note──> waits ──work──> learnt, when there is time

`note` queues a forwarded message; `work` learns from the queued messages.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Sequence

from tidings.relations.clusters import ClusterStore, StoreSettings
from tidings.relations.merit.postings import Postings
from tidings.relations.semantic import SemanticStore, Term, Weights

MOST_PENDING = 10_000  # the most messages that wait to be learnt; the oldest are dropped
MOST_HOPS = 8  # the most nodes that are learnt from one message


class ForwardedMerit:
    """Merits of messages. Every message is admitted, even if few subscriptions matched it: it has
    been forwarded, and each node stands for at least one subscription."""

    def __init__(self, semantic: SemanticStore, weights: Weights, settings: StoreSettings) -> None:
        self.store = ClusterStore(semantic, weights, settings)
        self._least = settings.least
        self._postings = Postings(self.store, lambda _: None)
        self._pending: deque[tuple[tuple[Term, ...], tuple[Hashable, ...], float]]
        self._pending = deque(maxlen=MOST_PENDING)

    @property
    def pending(self) -> int:
        """How many messages wait to be learnt."""
        return len(self._pending)

    def of(self, terms: Sequence[Term]) -> float:
        """The merit of a message with these terms; 0 if no related message was forwarded."""
        return sum(self._postings.score(terms).values()) if terms else 0.0

    def note(self, terms: tuple[Term, ...], nodes: Sequence[Hashable], now: float) -> None:
        """Note that a message was forwarded to the subscribers of some nodes."""
        if terms and nodes:
            self._pending.append((terms, tuple(nodes[:MOST_HOPS]), now))

    def work(self, most: int) -> int:
        """Learn from at most `most` messages, and return how many are left."""
        for _ in range(min(most, len(self._pending))):
            terms, nodes, now = self._pending.popleft()
            for node in nodes:
                known = self.store.node(terms, node)
                if known is None:
                    self.store.learn(terms, node, [node], now, self._least)
                else:
                    self.store.use([known], now, 1)
        return len(self._pending)
