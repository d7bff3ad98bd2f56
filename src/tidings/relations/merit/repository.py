"""The relation repository: send a message at once to hops with enough merit, then search exactly.

    event ─propose─> hops at or above the limit: sent at once, with the answers already stored
             │
             └─complete─> exact search of the groups without answers; related subscriptions;
                  │       a hop that was served gets only ids, any other hop the message
                  └─work─> learns from forwarded messages later, when there is time

The repository does not change which messages subscribers get, but frames may come earlier. Each id
that matches is named in exactly one frame of the message. If subscriptions change between the two
steps, the second step uses the later state. Subscribers who asked for related messages get them
too, each marked with its weight.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Sequence

import msgspec

from tidings.filters import Attributes, Filter, parse
from tidings.model import Event, TidingsError
from tidings.relations.clusters import ClusterStore, ForwardedNode, Hit, StoreSettings
from tidings.relations.merit.event_terms import Reading, TermReader, values_of
from tidings.relations.merit.exact_table import ExactTable, Group, MatchedIds, Values
from tidings.relations.merit.frame_plans import UNPLANNED, FramePlan, Plans, Sightings
from tidings.relations.merit.hop_frames import Frame
from tidings.relations.merit.postings import Postings
from tidings.relations.merit.related_subscriptions import RelatedInterests, RelatedMatch
from tidings.relations.merit.scoring import Limit, best_nodes, choose_hops
from tidings.relations.semantic import (
    Dictionary,
    Growth,
    SemanticStore,
    Term,
    Weights,
    name_key,
)

MOST_PENDING = 10_000  # the most messages that wait to be learnt; the oldest are dropped
MOST_ANSWERS = 16  # the most answers for one node, because its values may have several spellings
MOST_UNKNOWN = 10_000  # the most names that are remembered as unknown to the dictionary


class Proposal(msgspec.Struct, frozen=True, eq=False):
    """What is known about a message before the exact search."""

    event: Event
    plan: FramePlan
    changes: int
    """The state of the subscriptions."""

    @property
    def frames(self) -> tuple[Frame, ...]:
        """The frames to be sent at once."""
        return self.plan.frames

    @property
    def answered(self) -> MatchedIds:
        """The answers that are already known."""
        return self.plan.answered


class Forwarded(msgspec.Struct, frozen=True, eq=False):
    """A message that was forwarded, and waits to be learnt."""

    event: Event
    terms: tuple[Term, ...]
    found: MatchedIds
    now: float
    changes: int


class Repository:
    """Subscriptions with filters and hops, and what was forwarded to the hops."""

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
        plan_all: bool = True,
    ) -> None:
        """With `plan_all=False`, values that were never forwarded have merits only from their
        second message on, because finding merits takes longer than a search. `plan_all=False` is
        faster if many values occur only once."""
        self.semantic = semantic
        self.weights = weights or Weights()
        self.limit = limit or Limit()
        self.reader = TermReader(semantic, reading)
        self.store = ClusterStore(semantic, self.weights, settings)
        self.store.watch(self._node_changed)
        self.exact = ExactTable(reading.attributes(), attributes, background=background)
        self.related = RelatedInterests(semantic, self.weights, self.reader)
        self.plans = Plans(self.store)
        self.postings = Postings(self.store, self.plans.drop_term)
        self.exact.watch(self.plans.drop_answer)
        self.plan_all = plan_all
        self._sightings = Sightings()
        self._forwarded: dict[Values, int] = {}  # by forwarded values: the number of their nodes
        self._values_of_node: dict[int, set[Values]] = {}
        self._values = values_of(reading)
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
        """Add a subscription. With `related`, the subscription also gets messages that are related
        with at least this weight."""
        if isinstance(filter_, str):
            filter_ = parse(filter_, attributes=self._attributes)
        if id_ in self.exact:
            raise TidingsError(f"the id {id_!r} is already in use")
        if related is not None:
            self.related.add(id_, filter_, hop, related)
        self.subscribe_many([(id_, filter_, hop)])

    def subscribe_many(self, given: Iterable[tuple[Hashable, Filter | str, Hashable]]) -> None:
        """Add many subscriptions that want only exact matches."""
        groups = self.exact.groups
        self.exact.add_many(given)
        if self.exact.groups > groups:
            self.plans.drop_all()

    def set_count(self, id_: Hashable, hop: Hashable, count: int) -> None:
        """Set how many subscriptions at a hop an id represents; a node of a rendezvous point
        represents several. If `count` is 0, the hop no longer needs the id; the id itself is kept
        until it is cancelled."""
        if id_ not in self.exact:
            raise TidingsError(f"found the id {id_!r}, expected the id of a subscription")
        if count < 0:
            raise TidingsError(f"found {count} subscriptions, expected at least 0")
        if self.related.wants(id_) and (not count or set(self.exact.hops(id_)) != {hop}):
            raise TidingsError(
                f"found {'a second hop' if count else 'no hop'} for {id_!r}, expected exactly one "
                "hop: this subscription wants related messages"
            )
        self.exact.set_count(id_, hop, count)
        if not count:
            self.store.cancel(id_, hop)

    def cancel(self, id_: Hashable) -> None:
        """Remove a subscription, and the nodes that only this subscription needed."""
        if id_ not in self.exact:
            raise TidingsError(f"found the id {id_!r}, expected the id of a subscription")
        self.exact.cancel(id_)
        self.related.cancel(id_)
        self.store.cancel(id_)

    def set_limit(self, limit: Limit) -> None:
        """Change the limit for serving hops at once."""
        self.limit = limit
        self.plans.drop_all()

    # -- messages ------------------------------------------------------------------------------

    def propose(self, event: Event, now: float) -> Proposal:
        """Find the frames to send at once."""
        values = self._values(event)
        plan = None if values is None else self.plans.by_values.get(values)
        if plan is None:
            if not self.plan_all and values is not None and self._is_new(values):
                return Proposal(event, UNPLANNED, self.exact.changes)
            plan = self._plan(event)
            if values is not None:
                self.plans.keep(values, plan)
        if not plan.asked:
            self.plans.asked.append(plan)
        plan.asked += 1
        plan.last = now
        return Proposal(event, plan, self.exact.changes)

    def _is_new(self, values: Values) -> bool:
        """Whether these values were never forwarded, and have not occurred before."""
        return values not in self._forwarded and self._sightings.is_first(values)

    def _plan(self, event: Event) -> FramePlan:
        terms = self.reader.terms(event)
        served = choose_hops(self.postings.score(terms), self.limit)
        answered = self.exact.find_answers(event)
        ids = self.exact.by_hop(answered.ids())
        frames = tuple(
            Frame(hop, tuple(ids.get(hop, ())), True, merit) for hop, merit in served.items()
        )
        later = tuple(Frame(hop, tuple(ids[hop]), True) for hop in ids if hop not in served)
        used = {node.number: node for term in terms for node in self.postings.of(term).same}
        decisive = tuple(self.exact.decisive(event))
        learnt = {node.hop for node in used.values() if set(node.terms) == set(terms)}
        if len(answered) < len(decisive):
            learnt.clear()
        return FramePlan(
            terms, frames, later, answered, decisive, tuple(used.values()), frozenset(learnt)
        )

    def complete(self, proposal: Proposal, now: float) -> tuple[Frame, ...]:
        """The frames that are still to be sent, after the exact search."""
        event, plan = proposal.event, proposal.plan
        sent = plan.frames
        if proposal.changes != self.exact.changes and plan is not UNPLANNED:
            plan = self._plan(event)
        found = self.exact.search(event, plan.answered)
        hops = self.exact.by_hop(found.ids())
        terms = plan.terms
        if plan is UNPLANNED and (hops or self.related):
            terms = self.reader.terms(event)
        related: dict[Hashable, list[RelatedMatch]] = {}
        if self.related:
            exact = (*plan.answered.ids(), *found.ids())
            for match in self.related.find(event, terms, exact):
                related.setdefault(match.hop, []).append(match)
        decided = {frame.hop: frame.ids for frame in (*plan.frames, *plan.later) if frame.ids}
        if terms and not plan.learnt.issuperset((*hops, *decided)):
            found.update(plan.answered)
            self._pending.append(Forwarded(event, terms, found, now, self.exact.changes))
        if sent is plan.frames and not hops and not related:
            return plan.later
        served = {frame.hop: frame.ids for frame in sent}
        frames = []
        for hop in dict.fromkeys((*decided, *hops, *related)):
            before = set(served.get(hop, ()))
            ids = (*decided.get(hop, ()), *hops.get(hop, ()))
            left = tuple([one for one in ids if one not in before])
            if left or hop in related:
                near = tuple(related.get(hop, ()))
                frames.append(Frame(hop, left, hop not in served, related=near))
        return tuple(frames)

    def route(self, event: Event, now: float) -> tuple[Frame, ...]:
        """`propose` and `complete` in one call: all frames of a message."""
        proposal = self.propose(event, now)
        return proposal.frames + self.complete(proposal, now)

    def best(self, event: Event, count: int) -> list[Hit]:
        """The nodes in the store that are most strongly related to an event."""
        return best_nodes(self.store.find(self.reader.terms(event)), count)

    # -- index work ----------------------------------------------------------------------------

    @property
    def pending(self) -> int:
        """How many messages wait to be learnt."""
        return len(self._pending)

    def work(self, most: int = MOST_PENDING) -> int:
        """Learn from at most `most` forwarded messages, and return how many are left. Call this
        when there is nothing else to do."""
        self.plans.count_uses()
        for _ in range(min(most, len(self._pending))):
            self._learn(self._pending.popleft())
        return len(self._pending)

    def age(self, now: float) -> int:
        """Forget the nodes that were not used for a while, and return their number."""
        self.plans.count_uses()
        return self.store.age(now)

    def _learn(self, sent: Forwarded) -> None:
        event, terms, found = sent.event, sent.terms, sent.found
        if sent.changes != self.exact.changes:  # a stored answer must be complete
            found = self.exact.search(event)
        if self._dictionary is not None and self._ask_about(event):
            terms = self.reader.terms(event)
        nodes: list[ForwardedNode] = []
        for hop, ids in self.exact.by_hop(found.ids()).items():
            node = self.store.node(terms, hop)
            if node is None:
                count = self.exact.count(ids, hop)
                node = self.store.learn(terms, hop, ids, sent.now, count)
            if node is not None:
                nodes.append(node)
        if nodes:
            self._remember_values(event, nodes)
            held = self.exact.hold(event, found)
            for node in nodes:
                self._hold(node, held)
            for answer in held:
                if answer not in self._holders:
                    self.exact.release(*answer)

    def _remember_values(self, event: Event, nodes: Iterable[ForwardedNode]) -> None:
        """Remember that values were forwarded, for as long as one of the nodes is in the store."""
        values = None if self.plan_all else self._values(event)
        for node in nodes:
            if values is None or node not in self.store:
                continue
            mine = self._values_of_node.setdefault(node.number, set())
            if values not in mine and len(mine) < MOST_ANSWERS:
                mine.add(values)
                self._forwarded[values] = self._forwarded.get(values, 0) + 1

    def _hold(self, node: ForwardedNode, held: list[tuple[Group, Values]]) -> None:
        if node not in self.store:  # the node was dropped because the store is full
            return
        mine = self._held.setdefault(node.number, [])
        for answer in held:
            if answer not in mine and len(mine) < MOST_ANSWERS:
                mine.append(answer)
                self._holders.setdefault(answer, set()).add(node.number)

    def _node_changed(self, node: ForwardedNode, joined: bool, _fresh: Sequence[Term]) -> None:
        if joined:
            return
        for values in self._values_of_node.pop(node.number, ()):
            self._forwarded[values] -= 1
            if not self._forwarded[values]:
                del self._forwarded[values]
        for answer in self._held.pop(node.number, ()):
            holders = self._holders[answer]
            holders.discard(node.number)
            if not holders:
                del self._holders[answer]
                self.exact.release(*answer)

    def _ask_about(self, event: Event) -> bool:
        """Ask the dictionary about names that are not in the semantic store and have no related
        values among the stored ones; return whether the semantic store has grown."""
        grown = False
        for context, name in self.reader.values(event):
            term = self.reader.term(context, name)
            if not isinstance(name, str) or term is None or self.semantic.knows(term):
                continue
            asked = context, name_key(name)
            if asked in self._unknown or self.store.elements.find_related(term):
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
                self.store.replace(term, new)
                self.related.take_growth([Growth(term, new)])
        if grown:
            self.postings.forget()
            self.plans.drop_all()
        return grown
