"""Subscriptions that also want related messages: `related=0.7`.

    city = 'Chicago' AND day = 'Christmas' AND dep_delay > 60,  related 0.7

    city, day   tests of contexts: the best weight of each counts, and the mean must reach 0.7
    dep_delay   any other test: it must hold exactly

A test counts as a test of a context if it lists the values that it allows, and is the first such
test of its context. If a filter is an OR, its best alternative counts. A message related by a
broader value may have the weight 1.0, and is still marked as related; an exact match is never
delivered as related.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping

import msgspec

from tidings.filters import Filter
from tidings.filters.canonical import Form
from tidings.filters.language import Attribute, Call, Literal, term_value
from tidings.filters.values import STRING, TIME, Key, ValueSet, key
from tidings.model import Event, FilterError, TidingsError
from tidings.relations.clusters import Elements
from tidings.relations.merit.event_terms import TermReader
from tidings.relations.merit.gates import Alternative, Gated, Gates
from tidings.relations.semantic import (
    DAY,
    Context,
    Edge,
    Growth,
    SemanticStore,
    Term,
    TimeSpan,
    Value,
    Weights,
)

MOST_POINTS = 64  # the most values of one test
ROUNDING = 1e-9
"""How far rounding may put a weight below a limit: the mean of 0.7, 0.7 and 0.7 is below 0.7."""
MOST_TERMS = 65_536  # the most terms whose related values are cached


Best = tuple[Edge, Value | None, Value | None]  # edge, value in the filter, value of the message
_NONE: Best = Edge(0.0, "none"), None, None


class RelatedMatch(msgspec.Struct, frozen=True):
    """A subscription to which a message is related, and how strongly. For each context: the reason,
    the related value in the filter, and the value of the message; both values are None if no value
    is related."""

    id: Hashable
    hop: Hashable
    weight: float
    reasons: tuple[tuple[Context, Edge], ...]
    values: tuple[Value | None, ...] = ()
    own: tuple[Value | None, ...] = ()


class Interest(msgspec.Struct, frozen=True, eq=False):
    hop: Hashable
    least: float
    form: Form
    alternatives: tuple[Alternative, ...]


class RelatedInterests:
    """The subscriptions that want related messages, found through the values that they name."""

    def __init__(self, semantic: SemanticStore, weights: Weights, reader: TermReader) -> None:
        self._reader = reader
        self._named = reader.reading.named_attributes()
        self._elements = Elements(semantic, weights)
        self._interests: dict[Hashable, Interest] = {}
        self._gates = Gates()
        self._wanting: dict[Term, Gated] = {}
        self._related: dict[Term, dict[Value, Edge]] = {}  # a cache

    def __len__(self) -> int:
        return len(self._interests)

    def check(self, filter_: Filter, least: float) -> tuple[Alternative, ...]:
        """The alternatives of a filter; raises TidingsError if no message can be related to the
        filter, or if `least` is not a weight."""
        return self._check(None, filter_, least)

    def _check(self, id_: Hashable, filter_: Filter, least: float) -> tuple[Alternative, ...]:
        if not 0 < least <= 1:
            raise TidingsError(f"found related={least}, expected a number above 0 and at most 1")
        if filter_.form.boxes is None:
            raise FilterError(
                f"related={least} needs a filter with fewer alternatives than this one has; use "
                "several filters"
            )
        alternatives = tuple(self._split(id_, filter_.form))
        if not any(one.wanted for one in alternatives):
            names = ", ".join(self._named) or "none"
            raise FilterError(
                f"related={least} needs a test on a context ({names}), and this filter has none"
            )
        return alternatives

    def add(self, id_: Hashable, filter_: Filter, hop: Hashable, least: float) -> None:
        """Add a subscription that wants messages that are related by at least `least`."""
        self._check(id_, filter_, least)
        self._add(id_, filter_.form, hop, least)

    def _add(self, id_: Hashable, form: Form, hop: Hashable, least: float) -> None:
        terms = form.terms
        alternatives = tuple(
            msgspec.structs.replace(
                one, gate=self._gates.choose((terms[text], one.others[text]) for text in one.others)
            )
            for one in self._split(id_, form)
        )
        self._interests[id_] = Interest(hop, least, form, alternatives)
        self._related.clear()
        for one in alternatives:
            for term in one.terms():
                self._elements.add(term)
                self._wanting.setdefault(term, Gated()).add(id(one), one)

    def set_least(self, id_: Hashable, least: float) -> None:
        """Change the lowest weight of the messages that a subscription gets."""
        self._interests[id_] = msgspec.structs.replace(self._interests[id_], least=least)

    def can_weigh(self, filter_: Filter) -> bool:
        """Whether messages can be related to a filter: it must name values of a context."""
        return any(one.wanted for one in self._split(None, filter_.form))

    def wants(self, id_: Hashable) -> bool:
        """Whether a subscription wants related messages."""
        return id_ in self._interests

    def cancel(self, id_: Hashable) -> None:
        interest = self._interests.pop(id_, None)
        self._related.clear()
        for one in () if interest is None else interest.alternatives:
            self._gates.drop(one.gate)
            for term in one.terms():
                wanting = self._wanting[term]
                wanting.remove(id(one), one)
                if not wanting:
                    del self._wanting[term]
                    self._elements.remove(term)

    def refile(self, term: Term) -> None:
        """Index a term again, after its tree has grown."""
        self._elements.refile(term)
        self._related.clear()

    def take_growth(self, grown: Iterable[Growth]) -> None:
        """Read the names in filters again, because the semantic store has grown. The caller must
        empty the cache of the reader before this call."""
        for old, new in grown:
            self._elements.refile(new)
            if old != new and old in self._wanting:
                for id_ in self._wanting[old].ids():
                    interest = self._interests[id_]
                    self.cancel(id_)
                    self._add(id_, interest.form, interest.hop, interest.least)
        self._related.clear()

    def find(self, event: Event, terms: Iterable[Term], exact: Iterable[Hashable] = ()
             ) -> list[RelatedMatch]:  # fmt: skip
        """The subscriptions to which an event is related. The ids in `exact`, which match exactly,
        are left out."""
        if not self._interests:
            return []
        leave_out = set(exact)
        reached: dict[int, tuple[Alternative, dict[Context, Best]] | None] = {}
        values: dict[str, Key] = {}
        for term in terms:
            for value, edge in self._look_up(term).items():
                for items in self._wanting[Term(term.context, value)].find(event):
                    for number, one in items.items():
                        if number not in reached:
                            passes = one.id not in leave_out and self._passes(one, event, values)
                            reached[number] = (one, {}) if passes else None
                        known = reached[number]
                        if known is None:
                            continue
                        best = known[1]
                        if term.context not in best or edge.beats(best[term.context][0]):
                            best[term.context] = edge, value, term.value
        found: dict[Hashable, RelatedMatch] = {}
        for one, best in filter(None, reached.values()):
            match = self._weigh(one, best)
            old = found.get(one.id)
            if match is not None and (old is None or match.weight > old.weight):
                found[one.id] = match
        return list(found.values())

    def _look_up(self, term: Term) -> dict[Value, Edge]:
        """The values that filters name and that are related to a term."""
        found = self._related.get(term)
        if found is None:
            if len(self._related) >= MOST_TERMS:
                self._related.clear()
            found = self._related[term] = self._elements.find_related(term)
        return found

    def _passes(self, one: Alternative, event: Event, values: dict[str, Key]) -> bool:
        """Whether an event passes the tests in `others` of an alternative. `values`
        caches values of the event."""
        terms = self._interests[one.id].form.terms
        for text, allowed in one.others.items():
            value = values.get(text)
            if value is None:
                value = values[text] = key(term_value(terms[text], event))
            if value not in allowed:
                return False
        return True

    def _weigh(self, one: Alternative, edges: Mapping[Context, Best]) -> RelatedMatch | None:
        interest = self._interests[one.id]
        best = {context: edges.get(context, _NONE) for context in one.wanted}
        weight = sum(edge.weight for edge, *_ in best.values()) / len(best)
        if weight < interest.least - ROUNDING:
            return None
        reasons = tuple((context, edge) for context, (edge, *_) in best.items())
        values = tuple(value for _, value, _ in best.values())
        own = tuple(value for *_, value in best.values())
        return RelatedMatch(one.id, interest.hop, weight, reasons, values, own)

    def _split(self, id_: Hashable, form: Form) -> Iterator[Alternative]:
        for box in form.boxes or ():
            wanted: dict[Context, frozenset[Term]] = {}
            others: dict[str, ValueSet] = {}
            for term, allowed in box.items():
                named = self._values_of(form, term, allowed)
                if named is None or named[0] in wanted:
                    others[term] = allowed
                else:
                    wanted[named[0]] = named[1]
            yield Alternative(id_, wanted, others)

    def _values_of(
        self, form: Form, term: str, allowed: ValueSet
    ) -> tuple[Context, frozenset[Term]] | None:
        """The context of a test, and the terms that the test names; None if the test is of no
        context."""
        node = form.terms[term]
        names: list[object] = []
        if isinstance(node, Call) and node.name == "array_contains":
            of, element = node.args[0], node.args[1]
            if not isinstance(element, Literal) or key(False) in allowed:
                return None
            node, names = of, [element.value]
        elif isinstance(node, Attribute):
            for family, value, *_ in allowed.points(MOST_POINTS) or ():
                if family == STRING:
                    names.append(value)
                elif family == TIME:
                    names.append(TimeSpan(value, value + (DAY if value % DAY == 0 else 0)))
                else:
                    return None
        if not isinstance(node, Attribute) or len(node.path) != 1 or not names:
            return None
        context = self._named.get(node.path[0])
        if context is None:
            return None
        found = [self._reader.term(context, name) for name in names]
        terms = frozenset(one for one in found if one is not None)
        return (context, terms) if None not in found else None
