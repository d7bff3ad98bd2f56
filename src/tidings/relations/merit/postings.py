"""The nodes that a term finds, as arrays, so that merits of hops are added up in compiled code.

    term ──> slots of nodes, weights ─┐
    term ──> slots of nodes, weights ─┴─> merits of nodes ──> merits of hops

The nodes that a term finds are cached until a node is added or removed at an element that the term
looks at. A new element affects the terms that look for it, the terms above it, and all terms with a
position, because they may be near it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from tidings.relations.clusters import ClusterStore, ForwardedNode
from tidings.relations.merit.merit_kernels import add_up
from tidings.relations.semantic import Growth, Place, Term, TimeSpan

Array = npt.NDArray[Any]
MOST = 65_536  # the most terms that are cached
FIRST_SLOTS, FIRST_HOPS = 1024, 8


class Posting(msgspec.Struct, frozen=True, eq=False):
    """The nodes that a term finds. `same` has the nodes that have the term itself."""

    slots: Array
    weights: Array
    same: tuple[ForwardedNode, ...]
    looked_at: tuple[Term, ...]


class Postings:
    """The nodes that terms find in a store, and the merits of hops. `dropped` is called with each
    term that may now find different nodes."""

    def __init__(self, store: ClusterStore, dropped: Callable[[Term], None]) -> None:
        self._store = store
        self._dropped = dropped
        self._postings: dict[Term, Posting] = {}
        self._looking: dict[Term, set[Term]] = {}  # element -> terms that look for it
        self._slots: dict[int, int] = {}
        self._free: list[int] = []
        self._hop_numbers: dict[Hashable, int] = {}
        self._hop_names: list[Hashable] = []
        # how many nodes each hop has; the number of a hop without nodes is reused
        self._hop_nodes: list[int] = []
        self._free_hops: list[int] = []
        self._hops = np.zeros(FIRST_SLOTS, np.int32)
        self._merits = np.zeros(FIRST_SLOTS)
        self._make_room(FIRST_HOPS)
        for node in store:
            self._give_slot(node)
        store.watch(self._take_change)

    def of(self, term: Term) -> Posting:
        """The nodes that a term finds."""
        found = self._postings.get(term)
        return self._look_up(term) if found is None else found

    def score(self, terms: Sequence[Term]) -> dict[Hashable, float]:
        """The merit of each hop that is related to the terms of a message."""
        if not self._add_up(terms):
            return {}
        scores = zip(self._hop_names, self._scores.tolist(), strict=False)
        return {hop: score for hop, score in scores if score > 0}

    def total(self, terms: Sequence[Term]) -> float:
        """The merits of all hops together."""
        return float(self._scores.sum()) if self._add_up(terms) else 0.0

    def _add_up(self, terms: Sequence[Term]) -> bool:
        """Compute the merits of all hops; return False, and compute nothing, if no node is related
        to the terms."""
        found = [self.of(term) for term in terms]
        if len(found) == 1:
            slots, weights = found[0].slots, found[0].weights
        elif found:
            slots = np.concatenate([one.slots for one in found])
            weights = np.concatenate([one.weights for one in found])
        if not found or not len(slots):
            return False
        add_up(slots, weights, self._hops, self._merits, self._tops, self._counts, self._scores)
        return True

    def forget(self) -> None:
        """Empty the cache, because the semantic store has grown."""
        for term in list(self._postings):
            self._drop(term)

    def take_growth(self, grown: Iterable[Growth]) -> None:
        """Forget what these terms and the terms above them found, because the semantic store has
        grown."""
        elements = self._store.elements
        for old, new in grown:
            above = elements.semantic.ancestors(new, elements.weights.links)
            for term in (old, new, *(Term(new.context, one) for one in above)):
                self._drop(term)

    def _look_up(self, term: Term) -> Posting:
        if len(self._postings) >= MOST:
            self._drop(next(iter(self._postings)))
        elements, context = self._store.elements, term.context
        best: dict[int, float] = {}
        wanted = elements.semantic.expand(term, elements.weights)
        related = elements.find_related(term, wanted)
        for value, edge in related.items():
            for number in self._store.nodes_at(Term(context, value)):
                if edge.weight > best.get(number, 0.0):
                    best[number] = edge.weight
        looked_at = tuple(Term(context, one) for one in {**wanted, **related})
        slots = np.fromiter((self._slots[number] for number in best), np.int32, len(best))
        weights = np.fromiter(best.values(), np.float64, len(best))
        same = tuple(self._store.nodes_at(term).values())
        found = self._postings[term] = Posting(slots, weights, same, looked_at)
        for element in looked_at:
            self._looking.setdefault(element, set()).add(term)
        return found

    def _drop(self, term: Term) -> None:
        posting = self._postings.pop(term, None)
        if posting is None:
            return
        for element in posting.looked_at:
            looking = self._looking[element]
            looking.discard(term)
            if not looking:
                del self._looking[element]
        self._dropped(term)

    def _take_change(self, node: ForwardedNode, joined: bool, fresh: Sequence[Term]) -> None:
        """Drop what may have changed because a node was added or removed, and update the slots."""
        for element in node.terms:
            for term in list(self._looking.get(element, ())):
                self._drop(term)
        for element in fresh if joined else ():
            for above in self._store.elements.above(element):
                self._drop(above)
            if _has_position(element):
                for term in [one for one in self._postings if one.context == element.context]:
                    if _has_position(term):
                        self._drop(term)
        if joined:
            self._give_slot(node)
        else:
            self._free.append(self._slots.pop(node.number))
            hop = self._hop_numbers[node.hop]
            self._hop_nodes[hop] -= 1
            if not self._hop_nodes[hop]:
                del self._hop_numbers[node.hop]
                self._hop_names[hop] = None
                self._free_hops.append(hop)

    def _give_slot(self, node: ForwardedNode) -> None:
        slot = self._free.pop() if self._free else len(self._slots)
        if slot >= len(self._hops):
            self._hops = np.concatenate([self._hops, np.zeros_like(self._hops)])
            self._merits = np.zeros(len(self._hops))
        hop = self._hop_numbers.get(node.hop)
        if hop is None:
            if not self._free_hops:
                self._free_hops.append(len(self._hop_names))
                self._hop_names.append(None)
                self._hop_nodes.append(0)
            hop = self._hop_numbers[node.hop] = self._free_hops.pop()
            self._hop_names[hop] = node.hop
            if hop >= len(self._scores):
                self._make_room(2 * hop)
        self._hop_nodes[hop] += 1
        self._slots[node.number] = slot
        self._hops[slot] = hop

    def _make_room(self, hops: int) -> None:
        self._tops = np.zeros((hops, self._store.weights.best))
        self._counts = np.zeros(hops, np.int64)
        self._scores = np.zeros(hops)


def _has_position(term: Term) -> bool:
    value = term.value
    return isinstance(value, TimeSpan) or (isinstance(value, Place) and value.located)
