"""Reads the filters of a log with the attributes that its channel declares: checks that each filter
fits, and that all filters of a node are equal.

A filter keeps the node number that the log gave it. A later declaration can make two filters equal:
`x > 1` and `x >= 2` are one filter if x is an integer. Equal filters share the lowest of their
numbers.

In a log that was written before channels had declarations, subscriptions may share a node although
their filters are not equal any more. Then one of these filters keeps the node, and the
subscriptions with other filters must be added again, so that the log gives them new nodes: see
`Clash`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from tidings.filters import Attributes, Filter, parse
from tidings.model import FilterError, Id, TidingsError
from tidings.routing.protocol import DEFAULT_DIALECT, split_dialect
from tidings.spark.tagging.worker import Change
from tidings.store import Change as LogChange

MOST_TOLD = 100  # at most this many set-aside subscriptions are logged, with a line each
_log = logging.getLogger(__name__)


class Unfit(TidingsError):
    """A filter of the log does not fit the attributes that the channel declares."""


class RefusedSubscription(msgspec.Struct, frozen=True):
    """A subscription of the log whose filter the language now refuses, whatever the columns are,
    because a rule has become stricter since the filter was added. A subscription that is set aside
    does not affect the others."""

    id: Id | None  # None if the snapshot that lists the subscription has no id for it
    filter: str
    reason: str


def is_related(dialect: str) -> bool:
    """Whether a subscription asks for related notifications. Only the rendezvous point finds
    related notifications; for such a subscription, a pipeline tags rows with the exact node of the
    filter."""
    return bool(split_dialect(dialect)[1])


def aside(id_: Id, text: str, dialect: str) -> RefusedSubscription | None:
    """Return the subscription as one that is set aside; or None if the language accepts its filter,
    or if the subscription asks for related notifications."""
    if is_related(dialect):
        return None
    try:
        parse(text, dialect)
    except FilterError as problem:
        return RefusedSubscription(id_, text, problem.reason)
    return None


def log_set_aside(found: Sequence[RefusedSubscription]) -> None:
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
    """Subscriptions with different filters have the same node. If `again` is empty, the log must be
    compiled again, because one of the subscriptions may have ended; otherwise `again` has the ids
    of the subscriptions that must be added again."""

    def __init__(self, again: Sequence[Id] = ()) -> None:
        self.again = again


def unfit(id_: Id, text: str, problem: FilterError) -> Unfit:
    return Unfit(
        f"the filter of the subscription {id_!r} does not fit the declared attributes: "
        f"{problem.reason}, in {text!r:.200}; replace the filter, or drop the subscription"
    )


class Written(NamedTuple):
    """A filter as the log stores it, with its identity under the present declaration."""

    id: Id
    text: str
    key: bytes
    node: int
    dialect: str = DEFAULT_DIALECT
    is_node: bool = False
    """Whether the rendezvous point created the node for agents; if so, the filter can't be added
    again."""


def numbers_of(filters: Sequence[Written], identities: Mapping[int, bytes]) -> dict[bytes, int]:
    """The node number of each identity. `filters` are the filters of the current subscriptions;
    `identities` are the identities that the log stored, by number. If filters of one node differ,
    raises Clash: the filter that the log numbered keeps the node; if no filter was numbered by the
    log, the first one keeps it."""
    numbers: dict[bytes, int] = {}
    for one in filters:
        numbers[one.key] = min(one.node, numbers.get(one.key, one.node))
    if len(set(numbers.values())) == len(numbers):
        return numbers
    kept: dict[int, bytes] = {}
    for one in filters:
        if numbers[one.key] == one.node:
            kept.setdefault(one.node, one.key)
            logged = identities.get(one.node)
            if one.is_node or logged in (one.key, _bare(one.text, one.dialect)):
                kept[one.node] = one.key
    raise Clash([one.id for one in filters if kept[numbers[one.key]] != one.key])


def sql_of(found: Filter, text: str, dialect: str) -> str:
    """The text of a filter in SQL: as it was written, or translated."""
    return text if dialect == "sql" else found.sql()


class PendingChanges:
    """Turns the changes since a snapshot into the form that is sent with tasks: filters are parsed
    with the declared attributes."""

    def __init__(
        self, attributes: Attributes | None, compiled: Callable[[int], bytes | None]
    ) -> None:
        """`compiled` returns the identity of the snapshot's node with a given number; None if the
        snapshot has no such node."""
        self._attributes = attributes
        self._compiled = compiled
        self._keys: dict[int, bytes] = {}  # the identity of each node in these changes
        self._known: dict[int, Change | Unfit] = {}  # by version

    def read(self, changes: Iterable[LogChange]) -> tuple[Change, ...]:
        """All changes, in order, as they are sent. A subscription that is set aside is sent as
        ended.

        Raises Unfit if a filter does not fit the attributes and is still current after the last
        change. A filter that does not fit, but was replaced or dropped by a later change, is sent
        as ended; no batch uses a version in between, because that batch would be refused. Raises
        Clash if two filters have the same number.
        """
        found: list[Change] = []
        bad: dict[Id, Unfit] = {}
        for change in changes:
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
        if text is None or is_related(change.dialect):
            return Change(change.version, change.id, None, 0)
        dialect = change.dialect
        try:
            found = parse(text, dialect, attributes=self._attributes)
            key = found.key
        except FilterError as problem:
            if aside(change.id, text, dialect) is not None:
                return Change(change.version, change.id, None, 0)
            return unfit(change.id, text, problem)
        number = change.node
        if self._keys.setdefault(number, self._compiled(number) or key) != key:
            raise Clash
        return Change(change.version, change.id, sql_of(found, text, dialect), number)


def _bare(text: str, dialect: str) -> bytes | None:
    """The identity that a filter has without declared attributes; None if it is refused."""
    try:
        return parse(text, dialect).key
    except FilterError:
        return None
