"""Subscriptions that also want what is related: `related=0.7`.

    city = 'Chicago' AND day = 'Christmas' AND dep_delay > 60,  related 0.7

    city, day   tests of contexts: the best weight of each counts, and the mean must reach 0.7
    dep_delay   any other test: it must hold exactly

A test counts as one of a context if it names the values that it allows, and is the first of its
context. If a filter is an OR, the
best of its alternatives counts. A weight of 1.0 may come from a broader value, so what is related
is marked as such even then; what matches exactly is never delivered as related.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping

import msgspec

from tidings.filters import Filter
from tidings.filters.canonical import Form
from tidings.filters.language import Attribute, Call, Literal, term_value
from tidings.filters.values import STRING, TIME, ValueSet, key
from tidings.model import Event, FilterError, TidingsError
from tidings.relations.clusters import Elements
from tidings.relations.merit.event_terms import TermReader
from tidings.relations.semantic import (
    DAY,
    Context,
    Edge,
    SemanticStore,
    Span,
    Term,
    Value,
    Weights,
)

MOST_POINTS = 64  # values of one test
MOST_TERMS = 65_536  # terms whose related values are remembered


class RelatedMatch(msgspec.Struct, frozen=True):
    """A subscription that a message is related to: how strongly, and why in each context."""

    id: Hashable
    hop: Hashable
    weight: float
    reasons: tuple[tuple[Context, Edge], ...]


class Alternative(msgspec.Struct, frozen=True, eq=False):
    """One box of a filter: its values in each context, and its other tests."""

    id: Hashable
    wanted: dict[Context, frozenset[Term]]
    others: dict[str, ValueSet]


class Interest(msgspec.Struct, frozen=True, eq=False):
    hop: Hashable
    least: float
    form: Form
    alternatives: tuple[Alternative, ...]


class RelatedInterests:
    """The subscriptions that want what is related, found through the values that they name."""

    def __init__(self, semantic: SemanticStore, weights: Weights, reader: TermReader) -> None:
        self._reader = reader
        self._named = reader.reading.named()
        self._elements = Elements(semantic, weights)
        self._interests: dict[Hashable, Interest] = {}
        self._wanting: dict[Term, dict[int, Alternative]] = {}
        self._related: dict[Term, dict[Value, Edge]] = {}  # what terms find, until values change

    def __len__(self) -> int:
        return len(self._interests)

    def add(self, id_: Hashable, filter_: Filter, hop: Hashable, least: float) -> None:
        """Add a subscription that wants what is related by at least `least`."""
        if not 0 < least <= 1:
            raise TidingsError(f"found related={least}, expected a number above 0, up to 1")
        form = filter_.form
        if form.boxes is None:
            raise FilterError("found a filter with too many alternatives, expected one for which "
                              "related=... can be computed")  # fmt: skip
        alternatives = tuple(self._split(id_, form))
        if not any(one.wanted for one in alternatives):
            names = ", ".join(self._named) or "none"
            raise FilterError(
                f"found related={least}, expected a test that names values of a context ({names})"
            )
        self._interests[id_] = Interest(hop, least, form, alternatives)
        self._related.clear()
        for one in alternatives:
            for term in _terms(one):
                self._elements.add(term)
                self._wanting.setdefault(term, {})[id(one)] = one

    def can_weigh(self, filter_: Filter) -> bool:
        """Whether what is related to a filter can be found: it names values of a context."""
        return any(one.wanted for one in self._split(None, filter_.form))

    def wants(self, id_: Hashable) -> bool:
        """Whether a subscription wants what is related."""
        return id_ in self._interests

    def cancel(self, id_: Hashable) -> None:
        interest = self._interests.pop(id_, None)
        self._related.clear()
        for one in () if interest is None else interest.alternatives:
            for term in _terms(one):
                wanting = self._wanting[term]
                del wanting[id(one)]
                if not wanting:
                    del self._wanting[term]
                    self._elements.remove(term)

    def refile(self, term: Term) -> None:
        """File a term anew, after its tree has grown."""
        self._elements.refile(term)
        self._related.clear()

    def find(self, event: Event, terms: Iterable[Term], exact: Iterable[Hashable] = ()
             ) -> list[RelatedMatch]:  # fmt: skip
        """The subscriptions that an event is related to. `exact` are ids that match exactly."""
        if not self._interests:
            return []
        candidates: dict[int, Alternative] = {}
        edges: dict[int, dict[Context, Edge]] = {}
        for term in terms:
            for value, edge in self._look_up(term).items():
                for number, one in self._wanting[Term(term.context, value)].items():
                    candidates[number] = one
                    best = edges.setdefault(number, {})
                    if term.context not in best or edge.beats(best[term.context]):
                        best[term.context] = edge
        leave_out = set(exact)
        found: dict[Hashable, RelatedMatch] = {}
        for number, one in candidates.items():
            if one.id in leave_out:
                continue
            match = self._weigh(one, event, edges[number])
            old = found.get(one.id)
            if match is not None and (old is None or match.weight > old.weight):
                found[one.id] = match
        return list(found.values())

    def _look_up(self, term: Term) -> dict[Value, Edge]:
        """The values that are named and related to a term."""
        found = self._related.get(term)
        if found is None:
            if len(self._related) >= MOST_TERMS:
                self._related.clear()
            found = self._related[term] = self._elements.related(term)
        return found

    def _weigh(
        self, one: Alternative, event: Event, edges: Mapping[Context, Edge]
    ) -> RelatedMatch | None:
        interest = self._interests[one.id]
        best = {context: edges.get(context, Edge(0.0, "none")) for context in one.wanted}
        weight = sum(edge.weight for edge in best.values()) / len(best)
        if weight < interest.least:
            return None
        for term, allowed in one.others.items():
            if key(term_value(interest.form.terms[term], event)) not in allowed:
                return None
        return RelatedMatch(one.id, interest.hop, weight, tuple(best.items()))

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
        """The context of a test, and the terms that it names; None if it is another test."""
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
                    names.append(Span(value, value + (DAY if value % DAY == 0 else 0)))
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


def _terms(one: Alternative) -> Iterator[Term]:
    for terms in one.wanted.values():
        yield from terms
