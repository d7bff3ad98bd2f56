"""The exact search. It skips filters whose answers are known from an earlier message.

A filter that reads only attributes of contexts gives the same answer for two messages that agree on
these attributes. So filters are grouped by the attributes that they read:

    topic = 'T7'                        reads topic           answers by topic
    topic = 'T7' AND city = 'Chicago'   reads topic, city     answers by topic and city
    topic = 'T7' AND price > 9          reads price too       always searched

For values that were forwarded before, this module stores the whole answer of such a group: all ids
of the group that match. Answers are updated when subscriptions change. If all answers for a message
are stored, only the filters that read other attributes too are searched, in a matcher of their own;
otherwise the matcher of all filters is used. So a search with stored answers never takes longer
than one without them. A value that is only near or broader does not prove a match, so filters are
still searched for it.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection, Container, Hashable, Iterable, Iterator

from tidings.filters import Attributes, Filter, parse
from tidings.filters.canonical import Form, is_plain_term, reads
from tidings.filters.values import STRING
from tidings.matching import Matcher
from tidings.model import ABSENT, Event, TidingsError

# those attributes of contexts that filters read, sorted; None if the filters also read other
# attributes
Group = tuple[str, ...] | None
Values = tuple[Hashable, ...]
# Equal values of these types mean the same to every filter, and have equal hashes. Numbers and
# booleans are not among them: in Python, 1, 1.0 and True are equal.
_PLAIN = frozenset((str, type(None), dt.date, dt.datetime, type(ABSENT)))
MOST_POINTS = 64


class MatchedIds(dict[Group, list[Hashable]]):
    """The ids that match a message, by group."""

    def ids(self) -> list[Hashable]:
        return [one for found in self.values() for one in found]


class ExactTable:
    """Subscriptions with their filters and hops. `contexts` has the attributes that contain a
    place, a time, tags or a person."""

    def __init__(
        self,
        contexts: Iterable[str],
        attributes: Attributes | None = None,
        *,
        background: bool = False,
    ) -> None:
        self._contexts = frozenset(contexts)
        self._attributes = attributes
        self.changes = 0
        """How many times a subscription was added or cancelled."""
        self._groups: dict[Hashable, Group] = {}
        self._hops: dict[Hashable, dict[Hashable, int]] = {}  # id -> hop -> how many subscriptions
        self._all, self._rest = (Matcher(attributes, background=background) for _ in range(2))
        self._known: dict[Group, None] = {}  # groups that have subscriptions, or had some earlier
        self._answers: dict[Group, dict[Values, dict[Hashable, None]]] = {}
        self._answered: dict[Hashable, set[Values]] = {}  # id -> values whose answers contain it
        self._watchers: list[Callable[[Group, Values], None]] = []

    def watch(self, told: Callable[[Group, Values], None]) -> None:
        """Call a function when an answer is stored, dropped or changed."""
        self._watchers.append(told)

    def _tell(self, group: Group, values: Values) -> None:
        for told in self._watchers:
            told(group, values)

    def __len__(self) -> int:
        return len(self._groups)

    def __contains__(self, id_: Hashable) -> bool:
        return id_ in self._groups

    @property
    def groups(self) -> int:
        """How many groups there are."""
        return len(self._known)

    def hops(self, id_: Hashable) -> Collection[Hashable]:
        """The hops that lead to the subscriptions of an id."""
        return self._hops[id_]

    def by_hop(self, ids: Iterable[Hashable]) -> dict[Hashable, list[Hashable]]:
        """The ids, grouped by hop."""
        found: dict[Hashable, list[Hashable]] = {}
        for id_ in ids:
            for hop in self._hops[id_]:
                if hop in found:
                    found[hop].append(id_)
                else:
                    found[hop] = [id_]
        return found

    def count(self, ids: Iterable[Hashable], hop: Hashable) -> int:
        """The number of subscriptions at a hop that these ids represent."""
        return sum(self._hops[one].get(hop, 0) for one in ids)

    # -- subscriptions -------------------------------------------------------------------------

    def add_many(self, given: Iterable[tuple[Hashable, Filter | str, Hashable]]) -> None:
        """Add subscriptions; if one is refused, none is added."""
        sorted_out: dict[Group, list[tuple[Hashable, Filter]]] = {}
        hops: dict[Hashable, dict[Hashable, int]] = {}
        for id_, filter_, hop in given:
            parsed = (
                parse(filter_, attributes=self._attributes) if isinstance(filter_, str) else filter_
            )
            if id_ in self._groups:
                raise TidingsError(f"the id {id_!r} is already in use")
            if id_ in hops:
                raise TidingsError(f"the id {id_!r} occurs twice, expected once")
            hops[id_] = {hop: 1}
            sorted_out.setdefault(self._group(parsed.form), []).append((id_, parsed))
        self._all.add_many(pair for pairs in sorted_out.values() for pair in pairs)
        for group, pairs in sorted_out.items():
            self._known[group] = None
            if group is None:
                self._rest.add_many(pairs)
            for id_, parsed in pairs:
                self._groups[id_] = group
                self._answer_more(group, id_, parsed.form)
        self._hops.update(hops)
        self.changes += 1

    def cancel(self, id_: Hashable) -> None:
        self.changes += 1
        group = self._groups.pop(id_)
        del self._hops[id_]
        self._all.remove(id_)
        if group is None:
            self._rest.remove(id_)
        for values in self._answered.pop(id_, ()):
            del self._answers[group][values][id_]
            self._tell(group, values)

    def set_count(self, id_: Hashable, hop: Hashable, count: int) -> None:
        """Set how many subscriptions at a hop an id represents; if 0, the hop no longer needs the
        id."""
        hops = self._hops[id_]
        is_new = count > 0 and hop not in hops
        if count:
            hops[hop] = count
        if is_new or (not count and hops.pop(hop, 0)):
            self.changes += 1
            for values in list(self._answered.get(id_, ())):
                self._tell(self._groups[id_], values)

    def merge(self) -> None:
        """Compile all filters now."""
        self._all.merge()
        self._rest.merge()

    def _group(self, form: Form) -> Group:
        names = {path[0] for path in reads(form) if len(path) == 1}
        plain = len(names) == len(reads(form)) and all(map(is_plain_term, form.terms.values()))
        return tuple(sorted(names)) if plain and names <= self._contexts else None

    # -- answers -------------------------------------------------------------------------------

    def find_answers(self, event: Event) -> MatchedIds:
        """The groups that have a stored answer for this event, each with the ids that match."""
        found = MatchedIds()
        for group, answers in self._answers.items():
            values = self._values(group, event)
            if values is not None and values in answers:
                found[group] = list(answers[values])
        return found

    def decisive(self, event: Event) -> Iterator[tuple[Group, Values]]:
        """The groups whose answer for this event can be stored, each with the event's values."""
        for group in self._known:
            values = None if group is None else self._values(group, event)
            if values is not None:
                yield group, values

    def search(self, event: Event, skip: Container[Group] = ()) -> MatchedIds:
        """The ids that match, from all groups except those that are to be skipped."""
        found = MatchedIds((group, []) for group in self._known if group not in skip)
        if found.keys() <= {None}:
            if found:
                found[None] = self._rest.match(event)
            return found
        groups = self._groups
        for id_ in self._all.match(event):
            group = groups[id_]
            if group in found:
                found[group].append(id_)
        return found

    def hold(self, event: Event, found: MatchedIds) -> list[tuple[Group, Values]]:
        """Store the answers for a message, for all groups that can be skipped; `found` contains the
        ids of all groups. Return the stored answers; the caller must release them later."""
        held: list[tuple[Group, Values]] = []
        for group, ids in found.items():
            values = None if group is None else self._values(group, event)
            if values is None:
                continue
            answers = self._answers.setdefault(group, {})
            if values not in answers:
                answers[values] = dict.fromkeys(ids)
                for id_ in ids:
                    self._answered.setdefault(id_, set()).add(values)
                self._tell(group, values)
            held.append((group, values))
        return held

    def release(self, group: Group, values: Values) -> None:
        """Drop a stored answer."""
        for id_ in self._answers[group].pop(values):
            self._answered[id_].discard(values)
            if not self._answered[id_]:
                del self._answered[id_]
        if not self._answers[group]:
            del self._answers[group]
        self._tell(group, values)

    def held_answers(self) -> int:
        return sum(map(len, self._answers.values()))

    def _values(self, group: Group, event: Event) -> Values | None:
        """The values of an event that determine the answer of a group; None if the type of one of
        them is not in `_PLAIN`."""
        values = tuple(event.get(name, ABSENT) for name in group or ())
        return values if all(type(one) in _PLAIN for one in values) else None

    def _answer_more(self, group: Group, id_: Hashable, form: Form) -> None:
        """Add a new subscription to the answers that it belongs to."""
        answers = self._answers.get(group)
        if not answers or group is None:
            return
        candidates: Iterable[Values] = answers
        if len(group) == 1 and form.boxes is not None and len(form.boxes) == 1:
            points = form.boxes[0][group[0]].points(MOST_POINTS) if form.boxes[0] else None
            if points is not None and all(family == STRING for family, *_ in points):
                candidates = [(text,) for _, text, *_ in points if (text,) in answers]
        for values in candidates:
            event = dict(zip(group, values, strict=True))
            event = {name: value for name, value in event.items() if value is not ABSENT}
            if self._holds(form, event):
                answers[values][id_] = None
                self._answered.setdefault(id_, set()).add(values)
                self._tell(group, values)

    def _holds(self, form: Form, event: Event) -> bool:
        return form.holds(event if self._attributes is None else self._attributes.read(event))
