"""Filters that compute: their calls, patterns and programs can be slow, so the time is charged to
the owners of the filters. Filters that only test attributes and topics are not kept here.

    all at once, timed ── in time ──> the nodes that match
            └─ too long ─> one by one, oldest first, each charged to one of its owners:

       share of an owner │▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇│▇▇▇▇   its newest do not fit: they are set aside
                                                      other filters match as if they did not exist

No owner is charged for the filters of others, and no filter of an owner within its share is set
aside. If the filters of many owners together take longer than the limit for matching all at once,
this limit is raised.

Most computed conditions test a text attribute, and are null if the event lacks it. So filters that
need the same attribute form a group, which has its own matcher. Notifications without the attribute
are never matched against the group.

A batch is matched with all filters at once, as columns, within a limit for the whole batch. If it
takes longer, its notifications are matched one by one, each with its own limit. The same happens
while new filters wait for the index for batches: each batch adds only some, because the event loop
waits meanwhile.
"""

from __future__ import annotations

import contextlib
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tidings.channel.interests.index_kinds import RECENT_ENGINE
from tidings.filters import Filter
from tidings.filters.canonical import Form, is_opaque, is_plain_term
from tidings.filters.language import (
    FUNCTIONS,
    Attribute,
    Between,
    Call,
    Compare,
    Expression,
    In,
    Not,
    attributes_of,
    evaluate,
)
from tidings.filters.values import Key, WorkError, key, limit_work, look, sets
from tidings.matching import Matcher
from tidings.model import TidingsError
from tidings.preprocessing import CallIndex, Decisions
from tidings.routing.root import TooMuchWork

BYTES = 100_000  # a notification of this many bytes doubles the share of an owner
COLD = 4  # in the first attempt, caches may be empty, so each owner gets this many times its share
ROOM = 2  # matching all filters at once may take this many times their last total time
MOST = 1.0  # seconds after which a notification is refused, even if owners have time left
PAUSE = 1.0  # seconds until the filters are matched with a batch again, after it took too long
MOST_INDEXED = 128  # the most filters that one batch adds to the index for batches
MOST_NEEDED = 64  # the most attributes that get their own matcher, of about 10 KB

Array = npt.NDArray[Any]
Owners = Callable[[int], Sequence[str]]


class ChargedMatch(msgspec.Struct):
    """The result of matching filter by filter."""

    matched: list[int] = []
    over: dict[int, str] = {}  # nodes that were left out, with the owner whose share was used up
    spent: dict[str, float] = {}  # seconds, by owner


class KeptFilter(NamedTuple):
    """A filter, the attributes with which it computes, and an attribute without which it can't
    match; None if there is no such attribute."""

    filter: Filter
    needs: str | None
    reads: frozenset[str]


class Computing:
    """The filters that compute, by the numbers of their nodes."""

    def __init__(self, seconds: float, decisions: Decisions | None = None) -> None:
        """`seconds` is the share of an owner for one short notification; `decisions` are the
        results of predicates that filters call."""
        self.calls = CallIndex(decisions or Decisions())
        self._share = seconds
        self._all = seconds
        self._filters: dict[int, KeptFilter] = {}
        self._matchers: dict[str | None, Matcher] = {}
        self._together: Matcher | None = None  # all filters, once there were batches
        self._waiting: dict[int, None] = {}  # filters that are not in there yet
        self._readers = Counter[str]()  # how many filters compute with an attribute
        self._next_try = 0.0  # batches are not matched together before this time

    def __contains__(self, number: int) -> bool:
        return number in self._filters

    def __len__(self) -> int:
        return len(self._filters)

    def add(self, number: int, filter_: Filter) -> None:
        needs = find_required_attribute(filter_.form)
        if needs not in self._matchers:
            needs = needs if len(self._matchers) < MOST_NEEDED else None
            self._matchers.setdefault(needs, Matcher(engine=RECENT_ENGINE))
        self._matchers[needs].add(number, filter_)
        reads = _attributes_of_terms(filter_.form)
        self._filters[number] = KeptFilter(filter_, needs, reads)
        self._readers.update(reads)
        self._waiting[number] = None
        self.calls.add(number, filter_.form)

    def remove(self, number: int) -> None:
        needs = self._filters[number].needs
        matcher = self._matchers[needs]
        matcher.remove(number)
        if number in self._waiting:
            del self._waiting[number]
        elif self._together is not None:
            self._together.remove(number)
        for name in self._filters.pop(number).reads:
            self._readers[name] -= 1
            if not self._readers[name]:
                del self._readers[name]
        self.calls.discard(number)
        if not len(matcher):
            del self._matchers[needs]

    def match(self, event: Mapping[str, object], size: int) -> list[int]:
        """The nodes that match a notification of `size` bytes; raises TooMuchWork if matching takes
        longer than all filters together may take."""
        reached = self._reachable_matchers(event) if self._matchers else ()
        if not reached:
            return []
        seconds = self._all * _size_factor(size)
        with contextlib.suppress(WorkError):  # the first attempt may have to build the index too
            return _match(reached, event, seconds)
        try:
            return _match(reached, event, seconds)
        except WorkError as problem:
            raise TooMuchWork(str(problem)) from None

    def _reachable_matchers(self, event: Mapping[str, object]) -> list[Matcher]:
        """The matchers of filters that can match a notification."""
        names = event if len(event) < len(self._matchers) else self._matchers
        return [
            self._matchers[name]
            for name in {None, *names}
            if name in self._matchers and _is_there(event, name)
        ]

    def compute_with(self, names: Iterable[str]) -> bool:
        """Whether a filter computes with one of these attributes."""
        return any(name in self._readers for name in names)

    def match_batch(self, batch: pa.RecordBatch, seconds: float) -> tuple[Array, Array] | None:
        """(rows, nodes) of the matches of all notifications of a batch. None if the notifications
        must be matched one by one: together, they take longer than `seconds`, a notification would
        be refused, a predicate must be called, the values of a term have no common type in Arrow,
        or a filter distinguishes null from absent."""
        if len(self.calls) or time.monotonic() < self._next_try:
            return None
        if self._together is None:
            self._together = Matcher(engine=RECENT_ENGINE)
        for number in [*islice(self._waiting, MOST_INDEXED)]:
            self._together.add(number, self._filters[number].filter)
            del self._waiting[number]
        if self._together.null_paths() or self._waiting:  # the former indexes what was added
            return None
        begun, found = time.thread_time(), None
        # Arrow refuses lists of strings and of integers in one column
        with (
            contextlib.suppress(TidingsError, pa.ArrowException, OverflowError),
            limit_work(time.thread_time, seconds, time.monotonic),
        ):
            found = self._together.match_pairs(batch)
        # a call of Arrow is not interrupted, so a batch that was matched may have taken too long
        if found is None or time.thread_time() - begun > seconds:
            self._next_try = time.monotonic() + PAUSE
        return found

    def find_rows(self, batch: pa.RecordBatch) -> Array:
        """A Boolean for each row of a batch: whether a filter may match it, or may need a call to a
        predicate first."""
        found = np.zeros(batch.num_rows, np.bool_)
        if len(self.calls) or None in self._matchers:
            found[:] = True
        for name in self._matchers:
            if name in batch.schema.names:
                found |= batch.column(name).is_valid().to_numpy(zero_copy_only=False)
        return found

    def match_each(self, event: Mapping[str, object], size: int, owners: Owners) -> ChargedMatch:
        """The nodes that match, and those that exceed the share of an owner. This visits every
        filter on its own, but is rarely needed: afterwards, either some filters are set aside, or
        the limit for matching all filters at once is higher."""
        share = self._share * _size_factor(size)
        found = self._charge(event, owners, COLD * share)
        if max(found.spent.values(), default=0) > share:  # caches are cold, or a filter is slow
            found = self._charge(event, owners, share)
        spent = sum(found.spent.values())
        self._all = self._share if found.over else max(self._all, ROOM * spent / _size_factor(size))
        return found

    def _charge(self, event: Mapping[str, object], owners: Owners, share: float) -> ChargedMatch:
        values: dict[str, Key] = {}
        found = ChargedMatch([], {}, defaultdict(float))
        spent, clock = found.spent, time.thread_time
        total = 0.0
        for number in sorted(self._filters):
            form, needs = self._filters[number].filter.form, self._filters[number].needs
            if not _is_there(event, needs):
                continue
            reached = form.passes_plain_tests(event, values)
            terms = [one for one in _computed_terms(form, reached) if one[0] not in values]
            if terms:
                owner = min(owners(number) or ("",), key=spent.__getitem__)
                began = clock()
                try:
                    with limit_work(clock, min(share - spent[owner], MOST - total), time.monotonic):
                        for term, node in terms:
                            look()
                            values[term] = key(evaluate(node, event))
                except WorkError as problem:
                    if total + clock() - began > MOST:
                        raise TooMuchWork(str(problem)) from None
                    found.over[number] = owner
                    continue
                finally:
                    took = clock() - began
                    spent[owner] += took
                    total += took
            if reached and form.holds(event, values):
                found.matched.append(number)
        return found


def _size_factor(size: int) -> float:
    """The factor by which a notification of `size` bytes may take longer than a short one."""
    return 1 + size / BYTES


def _match(matchers: Iterable[Matcher], event: Mapping[str, object], seconds: float) -> list[int]:
    found: list[int] = []
    with limit_work(time.thread_time, seconds, time.monotonic):
        for matcher in matchers:
            look()
            found += matcher.match(event)  # type: ignore[arg-type]
    return found


def _is_there(event: Mapping[str, object], name: str | None) -> bool:
    return name is None or event.get(name) is not None


def find_required_attribute(form: Form) -> str | None:
    """An attribute without which no box of a filter can match; None if there is none."""
    found: set[str] | None = None
    for box in (form.hull,) if form.boxes is None else form.boxes:
        names: set[str] = set()
        for term, values in box.items():
            if not values & sets.NULL:
                names |= _strict_in(form.terms[term])
        found = names if found is None else found & names
    return min(found, default=None) if found else None


def _strict_in(node: Expression) -> set[str]:
    """The attributes of an expression that make it null whenever one of them is null."""
    match node:
        case Attribute(path):
            return {path[0]}
        case Call(name, args) if name in FUNCTIONS and FUNCTIONS[name].strict:
            return set().union(*map(_strict_in, args))
        case Compare(op, left, right) if op != "<=>":
            return _strict_in(left) | _strict_in(right)
        case In(item) | Between(item) | Not(item):
            return _strict_in(item)
    return set()


def _attributes_of_terms(form: Form) -> frozenset[str]:
    """The attributes with which the terms of a filter compute."""
    computed = (node for _, node in _computed_terms(form, reached=True))
    return frozenset(path[0] for node in computed for path in attributes_of(node))


def _computed_terms(form: Form, reached: bool) -> Iterator[tuple[str, Expression]]:
    """The terms that a matcher computes for a notification. Opaque conditions are computed only if
    all plain tests pass; other terms are always computed."""
    for text, node in form.terms.items():
        if not is_plain_term(node) and (reached or not is_opaque(node)):
            yield text, node
