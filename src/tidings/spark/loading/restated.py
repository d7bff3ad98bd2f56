"""Reads the filters of a log with the columns of a pipeline: checks that each filter fits the
columns, and gives it a node number.

When a filter was added, the log gave it a number that depends on its meaning. With other columns,
the same text can be a different filter: `x > 1` and `x >= 2` are one filter if x is an integer, and
two if it is a double. So numbers follow these rules:

- A filter keeps its number from the log if its identity is still the one that the log stored for
  that number. It is enough if its identity is equal either with the columns or without columns.
- Any other filter gets its own number, BEYOND or higher, which depends only on its identity. Such a
  number is the same at every version and in every compilation, and the log never assigns it.
- Filters that have become equal share the lowest of their numbers.

A number does not depend on earlier subscribers, so it never passes from one filter to another, and
the counters of nodes stay valid. If two filters would still keep the same number, it goes to the
filter that the log gave it to, or else to the first; the others get their own numbers.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

import msgspec

from tidings.filters import Attributes, Filter, parse
from tidings.model import FilterError, Id, TidingsError
from tidings.spark.tagging.worker import Change
from tidings.store import Change as LogChange, KeyedChange, State

BEYOND = 1 << 52
"""The lowest number that no log assigns. All numbers stay below 2^53, so JSON readers keep them
exact."""


MOST_TOLD = 100  # the most set-aside subscriptions that are logged with a line each
_log = logging.getLogger(__name__)


class Unfit(TidingsError):
    """A filter of the log does not fit the columns of the pipeline."""


class Aside(msgspec.Struct, frozen=True):
    """A subscription of the log whose filter the language now refuses with any columns, because a
    rule has become stricter since the filter was added. A subscription that is set aside does not
    affect the others."""

    id: Id | None  # None if it comes from a snapshot, where the id was not looked up
    filter: str
    reason: str


def aside(id_: Id, text: str, dialect: str) -> Aside | None:
    """Return the subscription as set aside, or None if the language accepts its filter."""
    try:
        parse(text, dialect)
    except FilterError as problem:
        return Aside(id_, text, problem.reason)
    return None


def log_set_aside(found: Sequence[Aside]) -> None:
    """Log a line for each subscription that is left out, up to MOST_TOLD."""
    for one in found[:MOST_TOLD]:
        who = "a subscription" if one.id is None else f"the subscription {one.id!r}"
        _log.warning(
            "%s is set aside, because its filter is no longer accepted: %s, in %.200r; replace the "
            "filter or drop the subscription", who, one.reason, one.filter,
        )  # fmt: skip
    if len(found) > MOST_TOLD:
        _log.warning("%d subscriptions in total are set aside", len(found))


class Clash(Exception):
    """Two filters among the changes and the snapshot have the same number. Only a new compilation
    resolves this."""


def unfit(id_: Id, text: str, problem: FilterError) -> Unfit:
    return Unfit(
        f"the filter of the subscription {id_!r} does not fit the columns: {problem.reason}, "
        f"in {text!r:.200}; replace the filter, drop the subscription, or restore the columns"
    )


class Written(NamedTuple):
    """A filter as the log stores it, with its identity under the columns."""

    text: str
    key: bytes
    node: int
    dialect: str = "sql"


def number_of(one: Written, logged: bytes | None) -> int:
    """The node number of a filter. The log gave it the number `node`, and stored the identity
    `logged` for that number. Nodes of older journals have no stored identity, and keep their
    numbers."""
    if logged is None or logged == one.key or logged == _bare(one.text, one.dialect):
        return one.node
    return _own(one.key)


def numbers_of(filters: Iterable[Written], identities: Mapping[int, bytes]) -> dict[bytes, int]:
    """The node number of each identity. `filters` are the filters of the current subscriptions;
    `identities` are the identities that the log stored, by number."""
    numbers: dict[bytes, int] = {}
    for one in filters:
        number = number_of(one, identities.get(one.node))
        numbers[one.key] = min(number, numbers.get(one.key, number))
    taken: dict[int, bytes] = {}
    for key, number in numbers.items():
        first = taken.setdefault(number, key)
        if number < BEYOND and first != key and identities.get(number) == key:
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
    """A filter text in SQL for each number, without the filters that do not fit the columns."""
    filters: list[tuple[Written, str]] = []
    for id_, (text, node) in state.subscriptions.items():
        dialect = state.dialect(id_)
        with suppress(FilterError):
            found = parse(text, dialect, attributes=attributes)
            filters.append((Written(text, found.key, node, dialect), sql_of(found, text, dialect)))
    numbers = numbers_of([one for one, _ in filters], state.identities)
    return {numbers[one.key]: sql for one, sql in reversed(filters)}


def sql_of(found: Filter, text: str, dialect: str) -> str:
    """The text of a filter in SQL: as it was written, or translated."""
    return text if dialect == "sql" else found.sql()


class PendingChanges:
    """Turns the changes since a snapshot into the form that is sent with tasks: filters are parsed
    and numbered with the columns of the pipeline."""

    def __init__(
        self,
        attributes: Attributes | None,
        logged: Callable[[int], bytes | None],
        compiled: Callable[[int], bytes | None],
    ) -> None:
        """`logged` returns the identity that the log had stored for a number when the snapshot was
        compiled. `compiled` returns the identity of the snapshot's node with that number. `logged`
        and `compiled` return None for other numbers."""
        self._attributes = attributes
        self._logged = logged
        self._new: dict[int, bytes] = {}  # identities that the log has stored since then, by number
        self._compiled = compiled
        self._keys: dict[int, bytes] = {}  # identities of the numbers used here
        self._known: dict[int, Change | Unfit] = {}  # by version

    def read(self, changes: Iterable[KeyedChange]) -> tuple[Change, ...]:
        """All changes, in order. A subscription that is set aside is sent as ended.

        Raises Unfit if a filter does not fit the columns and is still current after the last
        change. If such a filter was replaced or dropped by a later change, it is sent as ended; no
        batch uses a version in between, because the batch would be refused. Raises Clash if two
        filters have the same number.
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
        dialect = change.dialect
        try:
            found = parse(text, dialect, attributes=self._attributes)
            key = found.key
        except FilterError as problem:
            if aside(change.id, text, dialect) is not None:
                return Change(change.version, change.id, None, 0)
            return unfit(change.id, text, problem)
        logged = self._logged(change.node) or self._new.get(change.node)
        number = number_of(Written(text, key, change.node, dialect), logged)
        if self._keys.setdefault(number, self._compiled(number) or key) != key:
            raise Clash
        return Change(change.version, change.id, sql_of(found, text, dialect), number)


def _own(key: bytes) -> int:
    return BEYOND | int.from_bytes(key[:8], "big") >> 12


def _bare(text: str, dialect: str) -> bytes | None:
    """The identity of a filter without declared attributes."""
    try:
        return parse(text, dialect).key
    except FilterError:
        return None
