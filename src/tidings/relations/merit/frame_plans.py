"""The frames to send at once for the values of a message, cached until they change.

The values of popular messages occur again and again. The plan for such values has the frames that
are sent at once and the answers that are stored; a plan is found by one dictionary lookup. A plan
is dropped when a search for one of its terms would have a different result, or when one of its
answers changes.

Making a plan takes longer than the exact search for one message, and most values occur in only one
message. So a repository may plan only for values that were forwarded before, or that occur a second
time; `Sightings` remembers which values have occurred once.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TypeVar

import msgspec

from tidings.relations.clusters import ClusterStore, ForwardedNode
from tidings.relations.merit.exact_table import Group, MatchedIds, Values
from tidings.relations.merit.hop_frames import Frame
from tidings.relations.semantic import Term

MOST = 65_536  # the most plans that are cached
Key = TypeVar("Key", bound=Hashable)


class FramePlan(msgspec.Struct, eq=False):
    """The frames that are sent at once, and the answers that are already known. Each message with
    these values uses the `nodes`."""

    terms: tuple[Term, ...]
    frames: tuple[Frame, ...]
    """The frames to be sent at once."""
    later: tuple[Frame, ...]
    """Frames for ids that match according to an answer, to hops that are not served at once."""
    answered: MatchedIds
    decisive: tuple[tuple[Group, Values], ...]
    """The answers that are stored, or could be stored."""
    nodes: tuple[ForwardedNode, ...]
    learnt: frozenset[Hashable]
    """Hops to which exactly these terms were forwarded before; no hops if an answer is not stored
    yet."""
    asked: int = 0
    last: float = 0.0


UNPLANNED = FramePlan((), (), (), MatchedIds(), (), (), frozenset())
"""An empty plan, for values that have no plan yet: nothing is sent at once, no answer is known."""


class Sightings:
    """Values that have occurred once, in two sets; when the newer set is full, the older one is
    forgotten."""

    def __init__(self) -> None:
        self._now: set[Values] = set()
        self._before: set[Values] = set()

    def is_first(self, values: Values) -> bool:
        """Note values; return whether this is their first occurrence."""
        if values in self._now or values in self._before:
            return False
        if len(self._now) >= MOST:
            self._before, self._now = self._now, set()
        self._now.add(values)
        return True


class Plans:
    """Plans by the values of messages."""

    def __init__(self, store: ClusterStore) -> None:
        self.by_values: dict[Values, FramePlan] = {}
        self.asked: list[FramePlan] = []
        """Plans that were used since `count_uses` was called."""
        self._store = store
        self._of_term: dict[Term, set[Values]] = {}
        self._of_answer: dict[tuple[Group, Values], set[Values]] = {}

    def keep(self, values: Values, plan: FramePlan) -> None:
        """Cache a plan; the oldest plan is dropped if there are too many."""
        if len(self.by_values) >= MOST:
            self._drop(next(iter(self.by_values)))
        if len(self.asked) >= MOST:
            self.count_uses()
        self.by_values[values] = plan
        for term in plan.terms:
            self._of_term.setdefault(term, set()).add(values)
        for answer in plan.decisive:
            self._of_answer.setdefault(answer, set()).add(values)

    def drop_term(self, term: Term) -> None:
        """Drop the plans for a term that now finds different nodes."""
        for values in list(self._of_term.get(term, ())):
            self._drop(values)

    def drop_answer(self, group: Group, values: Values) -> None:
        """Drop the plans with an answer that has changed."""
        for one in list(self._of_answer.get((group, values), ())):
            self._drop(one)

    def drop_all(self) -> None:
        for values in list(self.by_values):
            self._drop(values)

    def count_uses(self) -> None:
        """Tell the store how often nodes were used since the last call."""
        for plan in self.asked:
            self._count(plan)
        self.asked.clear()

    def _count(self, plan: FramePlan) -> None:
        if plan.asked:
            self._store.use(plan.nodes, plan.last, plan.asked)
            plan.asked = 0

    def _drop(self, values: Values) -> None:
        plan = self.by_values.pop(values)
        self._count(plan)
        _discard(self._of_term, plan.terms, values)
        _discard(self._of_answer, plan.decisive, values)


def _discard(index: dict[Key, set[Values]], keys: Iterable[Key], values: Values) -> None:
    for key in keys:
        index[key].discard(values)
        if not index[key]:
            del index[key]
