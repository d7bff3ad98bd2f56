"""The filters of a log as the columns of a pipeline have them: do they go with them, and which
number has each.

The log numbered each filter as it was understood by whoever put it. Under other columns the same
text can be another filter: `x > 1` and `x >= 2` are one where x is an integer, and two where it is
a double. So a number is given by these rules:

- A filter keeps the number of the log when it still is what the log numbered: when its identity
  under the columns, or without any, is the one that the log has for the number.
- Any other has a number of its own, from BEYOND on, which follows from its identity alone: it is
  the same at every version, in every compilation, and none that the log will ever give.
- Filters that have become one share the lowest of their numbers.

Nothing depends on who subscribed to the number before, so a number never passes from one filter to
another, and counters of nodes go on. Should two filters keep one number after all, the one that the
log numbered has it, or the first, and the others get numbers of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

import msgspec

from tidings.filters import Attributes, parse
from tidings.model import FilterError, Id, TidingsError
from tidings.spark.tagging.worker import Change
from tidings.store import Change as LogChange, KeyedChange, State

BEYOND = 1 << 52
"""Where numbers begin that no log gave; they stay below 2^53, which readers of JSON can hold."""


class Unfit(TidingsError):
    """A filter of the log that can't be had with the columns of the pipeline."""


class Aside(msgspec.Struct, frozen=True):
    """A subscription of the log that the language itself refuses now, whatever the columns: a rule
    has become stricter since it was put. It is set aside, and the others go on."""

    id: Id | None  # None: of a snapshot, where nobody asked whose it is
    filter: str
    reason: str


def aside(id_: Id, text: str) -> Aside | None:
    """The subscription as one that is set aside; None for one that the language takes."""
    try:
        parse(text)
    except FilterError as problem:
        return Aside(id_, text, problem.reason)
    return None


class Clash(Exception):
    """Two filters among changes and snapshot have one number: only compiling them settles it."""


def unfit(id_: Id, text: str, problem: FilterError) -> Unfit:
    return Unfit(
        f"the filter of the subscription {id_!r} does not go with the columns: {problem.reason}, "
        f"in {text!r:.200}; put another in its place, drop it, or change the columns back"
    )


def number_of(text: str, key: bytes, node: int, logged: bytes | None) -> int:
    """The number of a filter whose identity under the columns is `key`; the log gave it `node`,
    and its identity for that is `logged`."""
    if logged == key or logged == _bare(text):
        return node
    return _own(key)


def numbers_of(
    filters: Iterable[tuple[str, bytes, int]], identities: Sequence[bytes]
) -> dict[bytes, int]:
    """The number of each identity, from (text, identity, the log's number) of all that are alive;
    `identities` are those that the log has, by number."""
    numbers: dict[bytes, int] = {}
    for text, key, node in filters:
        number = number_of(text, key, node, identities[node - 1])
        numbers[key] = min(number, numbers.get(key, number))
    taken: dict[int, bytes] = {}
    for key, number in numbers.items():
        first = taken.setdefault(number, key)
        if number < BEYOND and first != key and identities[number - 1] == key:
            taken[number] = key
    for key, number in numbers.items():
        if taken[number] != key:
            number = _own(key)
            while number in taken:
                number += 1
            taken[number] = key
            numbers[key] = number
    return numbers


def texts_of(state: State, attributes: Attributes | None) -> dict[int, str]:
    """A text for each number; filters that do not go with the columns have none."""
    filters: list[tuple[str, bytes, int]] = []
    for text, node in state.subscriptions.values():
        with suppress(FilterError):
            filters.append((text, parse(text, attributes=attributes).key, node))
    numbers = numbers_of(filters, state.identities)
    return {numbers[key]: text for text, key, _ in reversed(filters)}


class PendingChanges:
    """The changes since a snapshot, read by the columns, as they travel with tasks."""

    def __init__(
        self,
        attributes: Attributes | None,
        logged: Callable[[int], bytes | None],
        compiled: Callable[[int], bytes | None],
    ) -> None:
        """`logged` gives the identity that the log had for a number when the snapshot was made, and
        `compiled` that of a node of the snapshot; None for others."""
        self._attributes = attributes
        self._logged = logged
        self._new: dict[int, bytes] = {}  # identities that the log got since, by number
        self._compiled = compiled
        self._keys: dict[int, bytes] = {}  # of the numbers that were given here
        self._known: dict[int, Change | Unfit] = {}  # by version

    def read(self, changes: Iterable[KeyedChange]) -> tuple[Change, ...]:
        """All of them, in order; Unfit when one at the end of them can't be had, and Clash. What is
        set aside travels as an end.

        What can't be had and was changed again since travels as an end: no batch has a version in
        between, for it would be refused.
        """
        found: list[Change] = []
        bad: dict[Id, Unfit] = {}
        for change, key in changes:
            if key is not None:
                self._new[change.node] = key
            if change.version not in self._known:
                self._known[change.version] = self._read(change)
            one = self._known[change.version]
            bad.pop(change.id, None)
            if isinstance(one, Unfit):
                bad[change.id] = one
                one = Change(change.version, change.id, None, 0)
            found.append(one)
        if bad:
            raise next(iter(bad.values()))
        return tuple(found)

    def _read(self, change: LogChange) -> Change | Unfit:
        text = change.filter
        if text is None:
            return Change(change.version, change.id, None, 0)
        try:
            key = parse(text, attributes=self._attributes).key
        except FilterError as problem:
            if aside(change.id, text) is not None:
                return Change(change.version, change.id, None, 0)
            return unfit(change.id, text, problem)
        logged = self._logged(change.node) or self._new.get(change.node)
        number = number_of(text, key, change.node, logged)
        if self._keys.setdefault(number, self._compiled(number) or key) != key:
            raise Clash
        return Change(change.version, change.id, text, number)


def _own(key: bytes) -> int:
    return BEYOND | int.from_bytes(key[:8], "big") >> 12


def _bare(text: str) -> bytes | None:
    """The identity of a filter where nothing is declared."""
    try:
        return parse(text).key
    except FilterError:
        return None
