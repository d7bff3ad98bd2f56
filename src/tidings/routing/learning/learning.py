"""What a node learns from the notifications that it forwards in a channel with relations, and to
which neighbours it sends bodies early as a result.

    forwarded: context, labels, neighbours ──note──> pending ──work──> store of nodes
    context of an early body ──served──> the neighbours whose merit reaches the limit

Noting a frame costs one look-up. All other work is done later: the caller calls `work` when it is
idle. The number of frames that are noted between two calls is bounded. So a busy node learns only
from some of its frames, and forwards nearly as fast as without learning.

The graph of the state machine shows which subscriptions have ended; this is checked before each
use (store_upkeep.py).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from tidings.model import TidingsError
from tidings.relations import (
    ClusterStore,
    ForwardedNode,
    Limit,
    SemanticStore,
    StoreSettings,
    Term,
    Weights,
    decode_terms,
)
from tidings.relations.merit import Postings, choose_hops
from tidings.relations.semantic import Growth, NameLookup
from tidings.routing.forwarding import Downstream, Name
from tidings.routing.learning.hops import Hops
from tidings.routing.learning.store_upkeep import Upkeep
from tidings.routing.protocol import frames

MOST_NOTED = 100  # frames that are noted between two calls to `work`
MOST_PENDING = 500  # groups of noted frames that wait
MOST_CONTEXTS = 4_096  # contexts for which the neighbours are remembered
MOST_KEYS = 4_096  # early bodies that are remembered, so that they are not passed on again


class Way(Protocol):
    """How a notification is sent to a neighbour."""

    @property
    def neighbour(self) -> Name: ...


class EarlySettings(NamedTuple):
    """The settings of a node: when a neighbour gets bodies early, and what is remembered."""

    semantic: SemanticStore
    weights: Weights = Weights()
    limit: Limit = Limit()
    store: StoreSettings = StoreSettings(most=10_000)
    asking: NameLookup | None = None
    """Asks a dictionary about names that the trees lack."""


class _Noted:
    """Frames with the same context and the same labels that went to the same neighbours."""

    __slots__ = ("count", "marks", "ways")

    def __init__(self, ways: Iterable[Way], marks: int) -> None:
        self.ways = ways  # keeps the plan alive, because its `id` is part of the key
        self.marks = marks
        self.count = 1


class Learning:
    """What one node has learnt in one channel."""

    def __init__(self, machine: Downstream, serving: EarlySettings, now: float) -> None:
        self._machine = machine
        self.serving = serving
        self.store = ClusterStore(serving.semantic, serving.weights, serving.store)
        self._postings = Postings(self.store, self._forget_term)
        self._hops = Hops()
        self.store.watch(self._count)
        self._upkeep = Upkeep(self.store, machine.caches, self._wants, now)
        self._pending: dict[tuple[bytes, bytes, int], _Noted] = {}
        self._noted = 0  # frames since the last call to `work`
        if serving.asking is not None:
            serving.asking.tell(self)
        self._served: dict[bytes, tuple[dict[Name, float], tuple[Term, ...]]] = {}
        self._of_term: dict[Term, set[bytes]] = {}
        self._keys: dict[tuple[bytes, int], None] = {}
        self.left_out = 0  # frames that were not noted, for lack of room

    # -- what was forwarded --------------------------------------------------------------------

    @property
    def room(self) -> int:
        """How many more frames can be noted before the next call to `work`."""
        full = len(self._pending) >= MOST_PENDING
        return 0 if full else max(0, MOST_NOTED - self._noted)

    def note(self, context: bytes, labels: bytes, marks: int, ways: Iterable[Way]) -> None:
        """Note a frame that was forwarded. `ways` is the plan of the frame; frames that go to the
        same neighbours in the same way share one plan object."""
        self._noted += 1
        key = context, labels, id(ways)
        found = self._pending.get(key)
        if found is not None:
            found.count += 1
        elif len(self._pending) < MOST_PENDING:
            self._pending[key] = _Noted(ways, marks)
        else:
            self.left_out += 1

    @property
    def pending(self) -> int:
        """How many groups of noted frames wait to be learnt."""
        return len(self._pending)

    def work(self, now: float) -> bool:
        """Learn from one group of noted frames, or tidy the store a little; return False if there
        is nothing left to do. One call is short, so that the caller can stop at any time."""
        self.catch_up()
        self._noted = 0
        self._upkeep.age(now)
        if not self._pending:
            return self._upkeep.tidy()
        key = next(iter(self._pending))
        noted = self._pending.pop(key)
        context, labels, _ = key
        try:
            terms = self._terms(context)
            known = tuple(frames.decode_labels(labels, noted.marks))
        except TidingsError:  # a node above sent invalid bytes; the frame itself was forwarded
            return True
        wanted = self._find_wanted_by(known)
        for way in noted.ways:
            ids = wanted.get(way.neighbour, ())
            if ids:
                hop = self._hops.number(way.neighbour)
                count = sum(self._machine.count_behind(way.neighbour, one) for one in ids)
                node = self.store.learn(terms, hop, ids, now, count)
                if node is not None and noted.count > 1:
                    self.store.use([node], now, noted.count - 1)
                self._hops.count(hop, -1)
        return True

    def _terms(self, context: bytes) -> tuple[Term, ...]:
        asking, terms = self.serving.asking, decode_terms(context)
        return terms if asking is None else asking.renew(terms)

    def take_growth(self, grown: Sequence[Growth]) -> None:
        """Replace values in the store, because a dictionary now explains some of their names."""
        for old, new in grown:
            self.store.replace(old, new)
            self._forget_term(old)
        self._postings.take_growth(grown)

    def _find_wanted_by(self, labels: tuple[tuple[int, ...], ...]) -> dict[Name, set[int]]:
        """By neighbour: the nodes for which the neighbour gets a notification with these labels."""
        found: dict[Name, set[int]] = {}
        for name, way in self._machine.ways(labels).items():
            known = self._machine.neighbours.get(name)
            if known is not None:
                found[name] = {node for label in way.labels for node in label} & known.nodes
        return found

    def catch_up(self) -> None:
        """Forget what the node has learnt for subscriptions that have ended."""
        self._upkeep.catch_up()

    def _wants(self, hop: object, node: Hashable) -> bool:
        known = self._machine.neighbours.get(self._hops.name(hop))
        return known is not None and node in known.nodes

    def _count(self, node: ForwardedNode, joined: bool, _terms: Sequence[Term]) -> None:
        self._hops.count(node.hop, 1 if joined else -1)

    # -- early bodies --------------------------------------------------------------------------

    def find_served(self, context: bytes) -> Mapping[Name, float]:
        """The neighbours that get a body with this context early, with their merits. Raises
        TidingsError if the context can't be read."""
        self.catch_up()
        found = self._served.get(context)
        if found is not None:
            return found[0]
        terms = self._terms(context)
        scores = choose_hops(self._postings.score(terms), self.serving.limit)
        hops = {self._hops.name(hop): merit for hop, merit in scores.items()}
        if len(self._served) >= MOST_CONTEXTS:
            self._served.clear()
            self._of_term.clear()
            self._postings.forget()
        self._served[context] = hops, terms
        for term in terms:
            self._of_term.setdefault(term, set()).add(context)
        return hops

    def _forget_term(self, term: Term) -> None:
        """Forget the neighbours of all contexts with this term, because a search for the term has
        other results now."""
        for context in self._of_term.pop(term, ()):
            found = self._served.pop(context, None)
            for other in () if found is None else found[1]:
                if other != term and other in self._of_term:
                    self._of_term[other].discard(context)

    def is_new(self, publisher: bytes, stamp: int) -> bool:
        """Is this the first early body of a notification? Any later one is a repetition, or came in
        a loop."""
        key = publisher, stamp
        if key in self._keys:
            return False
        if len(self._keys) >= MOST_KEYS:
            del self._keys[next(iter(self._keys))]
        self._keys[key] = None
        return True

    # -- what is shown -------------------------------------------------------------------------

    def hop_name(self, hop: object) -> Name:
        """The neighbour that has this number in the store."""
        return self._hops.name(hop)

    def rank_terms(self) -> list[tuple[Term, Name, float, int]]:
        """All terms of the store, those with the highest merit first. For each term: the neighbour
        that has the highest merit for a notification with the term, this merit, and how often the
        term was used."""
        found = []
        for term in self.store.elements:
            scores = self._postings.score([term])
            hop = max(scores, key=scores.__getitem__)
            uses = sum(node.uses for node in self.store.nodes_at(term).values())
            found.append((term, self._hops.name(hop), scores[hop], uses))
        return sorted(found, key=lambda one: (-one[2], -one[3]))
