"""Finds related subscriptions through one of their tests outside the contexts, their *gate*.

    city = 'Chicago' AND who = 'u7'      found by Chicago, and only if the message has who = 'u7'
    city = 'Chicago' AND late > 60       has no gate: found by Chicago

A gate tests an attribute that belongs to no context, and allows only a few strings or whole
numbers. If a filter has several such tests, the gate is the one whose values the fewest other gates
use, so that few subscriptions are found for a message that is not related to them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping

import msgspec

from tidings.filters.language import Attribute, Expression, term_value
from tidings.filters.values import NUMBER, STRING, Key, ValueSet, key
from tidings.model import Event
from tidings.relations.semantic import Context, Term

MOST_KEYS = 64  # the most values that a gate allows


class Gate(msgspec.Struct, frozen=True):
    """A test that only a few values pass."""

    attribute: Attribute
    keys: tuple[Key, ...]

    @property
    def name(self) -> str:
        return self.attribute.path[0]


class Alternative(msgspec.Struct, frozen=True, eq=False):
    """One box of a filter: its values in each context, its other tests, and which of the other
    tests is its gate."""

    id: Hashable
    wanted: dict[Context, frozenset[Term]]
    others: dict[str, ValueSet]
    gate: Gate | None = None

    def terms(self) -> Iterator[Term]:
        """All terms that this alternative names."""
        for terms in self.wanted.values():
            yield from terms


class Gates:
    """Chooses gates, by how many gates use each value."""

    def __init__(self) -> None:
        self._used: dict[tuple[str, Key], int] = {}

    def choose(self, tests: Iterable[tuple[Expression, ValueSet]]) -> Gate | None:
        """The gate of a filter with these tests; None if no test can be a gate."""
        found = [gate for node, allowed in tests if (gate := _gate_of(node, allowed))]
        best = min(found, key=self._crowd, default=None)
        self._count(best, 1)
        return best

    def drop(self, gate: Gate | None) -> None:
        self._count(gate, -1)

    def _crowd(self, gate: Gate) -> int:
        return len(gate.keys) + sum(self._used.get((gate.name, one), 0) for one in gate.keys)

    def _count(self, gate: Gate | None, more: int) -> None:
        if gate is None:
            return
        for one in gate.keys:
            left = self._used.pop((gate.name, one), 0) + more
            if left:
                self._used[gate.name, one] = left


class Gated:
    """Alternatives by number; those with a gate are found only through the gate."""

    __slots__ = ("_free", "_gates")

    def __init__(self) -> None:
        self._free: dict[int, Alternative] = {}
        self._gates: dict[str, tuple[Attribute, dict[Key, dict[int, Alternative]]]] = {}

    def __bool__(self) -> bool:
        return bool(self._free or self._gates)

    def add(self, number: int, one: Alternative) -> None:
        gate = one.gate
        if gate is None:
            self._free[number] = one
            return
        places = self._gates.setdefault(gate.name, (gate.attribute, {}))[1]
        for allowed in gate.keys:
            places.setdefault(allowed, {})[number] = one

    def remove(self, number: int, one: Alternative) -> None:
        gate = one.gate
        if gate is None:
            del self._free[number]
            return
        places = self._gates[gate.name][1]
        for allowed in gate.keys:
            del places[allowed][number]
            if not places[allowed]:
                del places[allowed]
        if not places:
            del self._gates[gate.name]

    def ids(self) -> set[Hashable]:
        """The ids of all alternatives."""
        placed = [there for _, places in self._gates.values() for there in places.values()]
        return {one.id for there in (self._free, *placed) for one in there.values()}

    def find(self, event: Event) -> Iterator[Mapping[int, Alternative]]:
        """The distinct alternatives that an event can reach."""
        if self._free:
            yield self._free
        gates = self._gates
        for name in event if len(event) < len(gates) else gates:
            if name in gates and name in event:
                attribute, places = gates[name]
                found = places.get(key(term_value(attribute, event)))
                if found:
                    yield found


def _gate_of(node: Expression, allowed: ValueSet) -> Gate | None:
    if not isinstance(node, Attribute) or len(node.path) != 1:
        return None
    keys = allowed.points(MOST_KEYS)
    # other values, such as null and long decimals, have several forms, or match an absent attribute
    if not keys or any(one[0] not in (STRING, NUMBER) or type(one[1]) not in (str, int)
                       for one in keys):  # fmt: skip
        return None
    return Gate(node, tuple(keys))
