"""The relation repository: send at once where merit says so, then search exactly.

    event ─propose─> hops at or above the limit: sent at once, with what is decided already
             │
             └─complete─> exact search, without what was decided; related subscriptions;
                  │       a hop that was not served gets the message, one that was gets only ids
                  └─work─> learns from what was forwarded, later, when there is time

No subscriber can tell whether there is a repository, except that frames may come earlier: the
frames of a message name each id that matches exactly once. If subscriptions change between the two
steps, the second step goes by the later state. Those who asked for related messages get them too,
marked with their weight.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable

import msgspec

from tidings.filters import Attributes, Filter, parse
from tidings.model import Event, TidingsError
from tidings.relations.clusters import ClusterStore, ForwardedNode, Hit, StoreSettings
from tidings.relations.merit.exact_table import ExactTable, Found, Group, Values
from tidings.relations.merit.reading import Reading, TermReader
from tidings.relations.merit.related import RelatedInterests, RelatedMatch
from tidings.relations.merit.scoring import Limit, best_nodes, choose_hops, score_hops
from tidings.relations.semantic import Dictionary, SemanticStore, Term, Weights, name_key

MOST_PENDING = 10_000  # messages that wait to be learnt; then the oldest are left out
MOST_ANSWERS = 16  # that are held for one node: values that are spelt differently
MOST_UNKNOWN = 10_000  # names that the dictionary does not know, which are not asked again


class Frame(msgspec.Struct, frozen=True):
    """What is sent to one hop: the ids that match exactly, and those that the message is related
    to. A hop that was served at once needs the payload only once."""

    hop: Hashable
    ids: tuple[Hashable, ...]
    payload: bool
    merit: float | None = None
    """Of a frame that is sent before the exact search."""
    related: tuple[RelatedMatch, ...] = ()


class Proposal(msgspec.Struct, frozen=True, eq=False):
    """What is known about a message before the exact search."""

    event: Event
    terms: tuple[Term, ...]
    frames: tuple[Frame, ...]
    """To be sent at once."""
    answered: Found
    """What is decided already."""
    changes: int
    """The state of the subscriptions."""


class Forwarded(msgspec.Struct, frozen=True, eq=False):
    """A message that was forwarded, and waits to be learnt."""

    event: Event
    terms: tuple[Term, ...]
    found: Found
    now: float
    changes: int


class Repository:
    """Subscriptions with filters and hops, and what was forwarded to them."""

    def __init__(
        self,
        semantic: SemanticStore,
        reading: Reading,
        *,
        weights: Weights | None = None,
        settings: StoreSettings | None = None,
        limit: Limit | None = None,
        attributes: Attributes | None = None,
        dictionary: Dictionary | None = None,
        background: bool = False,
    ) -> None:
        self.semantic = semantic
        self.weights = weights or Weights()
        self.limit = limit or Limit()
        self.reader = TermReader(semantic, reading)
        self.store = ClusterStore(semantic, self.weights, settings)
        self.store.watch(self._forgotten)
        self.exact = ExactTable(reading.attributes(), attributes, background=background)
        self.related = RelatedInterests(semantic, self.weights, self.reader)
        self._attributes = attributes
        self._dictionary = dictionary
        self._unknown: set[tuple[str, str]] = set()
        self._pending: deque[Forwarded] = deque(maxlen=MOST_PENDING)
        self._held: dict[int, list[tuple[Group, Values]]] = {}  # node -> answers
        self._holders: dict[tuple[Group, Values], set[int]] = {}

    # -- subscriptions -------------------------------------------------------------------------

    def subscribe(
        self, id_: Hashable, filter_: Filter | str, hop: Hashable, related: float | None = None
    ) -> None:
        """Add a subscription. With `related`, it also gets messages that are related so much."""
        if isinstance(filter_, str):
            filter_ = parse(filter_, attributes=self._attributes)
        if id_ in self.exact:
            raise TidingsError(f"the id {id_!r} occurs twice, expected once")
        if related is not None:
            self.related.add(id_, filter_, hop, related)
        self.exact.add(id_, filter_, hop)

    def subscribe_many(self, given: Iterable[tuple[Hashable, Filter | str, Hashable]]) -> None:
        """Add many subscriptions that want only exact matches."""
        self.exact.add_many(given)

    def cancel(self, id_: Hashable) -> None:
        """Remove a subscription, and what was learnt for it alone."""
        if id_ not in self.exact:
            raise TidingsError(f"found the id {id_!r}, expected one that is subscribed")
        self.exact.cancel(id_)
        self.related.cancel(id_)
        self.store.cancel(id_)

    # -- messages ------------------------------------------------------------------------------

    def propose(self, event: Event, now: float) -> Proposal:
        """What to send at once."""
        terms = self.reader.terms(event)
        hits = self.store.find(terms)
        self.store.use(hits, now)
        served = choose_hops(score_hops(hits, self.weights.best), self.limit)
        answered = self.exact.answered(event)
        ids = self._by_hop(answered.ids()) if served else {}
        frames = tuple(
            Frame(hop, tuple(ids.get(hop, ())), True, merit) for hop, merit in served.items()
        )
        return Proposal(event, terms, frames, answered, self.exact.changes)

    def complete(self, proposal: Proposal, now: float) -> tuple[Frame, ...]:
        """The frames that are still to be sent, after the exact search."""
        event, terms, answered = proposal.event, proposal.terms, proposal.answered
        if proposal.changes != self.exact.changes:
            answered = self.exact.answered(event)
        found = self.exact.search(event, answered)
        found.update(answered)
        exact = found.ids()
        served = {frame.hop: set(frame.ids) for frame in proposal.frames}
        ids = self._by_hop(exact)
        related: dict[Hashable, list[RelatedMatch]] = {}
        for match in self.related.find(event, terms, exact):
            related.setdefault(match.hop, []).append(match)
        frames = []
        for hop in dict.fromkeys((*ids, *related)):
            sent = served.get(hop, set())
            left = tuple(one for one in ids.get(hop, ()) if one not in sent)
            if left or hop in related:
                near = tuple(related.get(hop, ()))
                frames.append(Frame(hop, left, hop not in served, related=near))
        if (
            terms
            and exact
            and (
                any(self.store.node(terms, hop) is None for hop in ids)
                or self.exact.lacks_answers(event, answered)
            )
        ):
            self._pending.append(Forwarded(event, terms, found, now, self.exact.changes))
        return tuple(frames)

    def route(self, event: Event, now: float) -> tuple[Frame, ...]:
        """Propose and complete: all frames of a message."""
        proposal = self.propose(event, now)
        return proposal.frames + self.complete(proposal, now)

    def best(self, event: Event, count: int) -> list[Hit]:
        """What was forwarded before and is related most to an event."""
        return best_nodes(self.store.find(self.reader.terms(event)), count)

    # -- index work ----------------------------------------------------------------------------

    @property
    def pending(self) -> int:
        """How many messages wait to be learnt."""
        return len(self._pending)

    def work(self, most: int = MOST_PENDING) -> int:
        """Learn from so many messages that were forwarded, and return how many are left. It can be
        called when there is nothing else to do."""
        for _ in range(min(most, len(self._pending))):
            self._learn(self._pending.popleft())
        return len(self._pending)

    def _learn(self, sent: Forwarded) -> None:
        event, terms, found = sent.event, sent.terms, sent.found
        if sent.changes != self.exact.changes:  # an answer that is held must be complete
            found = self.exact.search(event)
        if self._dictionary is not None and self._ask_about(event):
            terms = self.reader.terms(event)
        nodes: list[ForwardedNode] = []
        for hop, ids in self._by_hop(found.ids()).items():
            node = self.store.node(terms, hop) or self.store.learn(terms, hop, ids, sent.now)
            if node is not None:
                nodes.append(node)
        if nodes:
            held = self.exact.hold(event, found)
            for node in nodes:
                self._hold(node, held)
            for answer in held:
                if answer not in self._holders:
                    self.exact.release(*answer)

    def _hold(self, node: ForwardedNode, held: list[tuple[Group, Values]]) -> None:
        if node not in self.store:  # the bound has thrown it out again
            return
        mine = self._held.setdefault(node.number, [])
        for answer in held:
            if answer not in mine and len(mine) < MOST_ANSWERS:
                mine.append(answer)
                self._holders.setdefault(answer, set()).add(node.number)

    def _forgotten(self, node: ForwardedNode) -> None:
        for answer in self._held.pop(node.number, ()):
            holders = self._holders[answer]
            holders.discard(node.number)
            if not holders:
                del self._holders[answer]
                self.exact.release(*answer)

    def _ask_about(self, event: Event) -> bool:
        """Ask the dictionary about names that are in no tree and near nothing; return whether the
        semantic store has grown."""
        grown = False
        for context, name in self.reader.values(event):
            term = self.reader.term(context, name)
            if not isinstance(name, str) or term is None or self.semantic.knows(term):
                continue
            asked = context, name_key(name)
            if asked in self._unknown or self.store.elements.related(term):
                continue
            assert self._dictionary is not None
            new = self.semantic.grow(context, name, self._dictionary)
            if new is None:
                if len(self._unknown) >= MOST_UNKNOWN:
                    self._unknown.clear()
                self._unknown.add(asked)
            else:
                grown = True
                self.reader.forget()
                self.store.elements.refile(new)
                self.related.refile(new)
        return grown

    def _by_hop(self, ids: Iterable[Hashable]) -> dict[Hashable, list[Hashable]]:
        found: dict[Hashable, list[Hashable]] = {}
        for id_ in ids:
            found.setdefault(self.exact.hop(id_), []).append(id_)
        return found
