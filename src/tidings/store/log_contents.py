"""The contents of a log of subscriptions: its changes, its state at a version, and the result of a
repair.

    JournalState, the state of the whole channel ──read_state──> State, its subscriptions

A node that the rendezvous point created for agents counts as a subscription here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from tidings.model import Id
from tidings.routing.root import CHANNEL
from tidings.store.change_records import ChangeRecord, decode_interest
from tidings.store.declared import StoredDeclaration, StoredFilter
from tidings.store.journal.entries import anonymous_id
from tidings.store.journal.rows import SQL
from tidings.store.journal.state import JournalState
from tidings.store.layered import own_part

THE_CHANNEL = "the channel"
"""The name of the owner of nodes that exist only because of notifications, as users read it."""
Subscriptions = dict[Id, tuple[str, int]]
Dialects = dict[Id, str]  # the dialects of subscriptions whose filters are not in SQL


class Change(msgspec.Struct, frozen=True):
    """A change to a subscription: the subscription is new, was replaced, or has ended."""

    version: int
    """Versions are 1, 2, 3 and so on. There are gaps after a repair, or if the channel has a
    rendezvous point."""
    id: Id
    """The id of the subscription."""
    filter: str | None
    """The text of the filter; None if the subscription ended."""
    node: int
    """The node of the filter; 0 if the subscription ended. Equal filters share a node. If a filter
    is added again after its last subscription ended, the filter gets a new node."""
    dialect: str = SQL
    """The dialect that the filter is written in."""
    owner: str = ""
    """The owner of the subscription; empty if none was given. For a node that the rendezvous point
    created, the agent that first asked for it, or the channel itself."""


class Adoption(msgspec.Struct, frozen=True):
    """A snapshot that was adopted as a whole, as one version."""

    version: int
    """The version, which is also the number of the last node."""
    first: int
    """The number of the first node."""
    subscriptions: int
    """How many subscriptions the snapshot has; 0 if that was not recorded."""
    owner: str = ""
    """The owner of the adopted subscriptions; empty if none was given."""


class Declared(msgspec.Struct, frozen=True):
    """The channel declared other attributes or another kind of interest, or the set of filters that
    it refuses has changed."""

    version: int
    declaration: StoredDeclaration


KeyedChange = tuple[Change, bytes | None]


class Summary(NamedTuple):
    """Counts of what is in a channel."""

    version: int
    nodes: int
    subscriptions: int  # those with an id; agents without a name have only nodes
    notifications: int  # all notifications with a number, even if no longer stored


class State(msgspec.Struct, frozen=True):
    """The state after all changes up to a version."""

    subscriptions: Subscriptions
    """Text and node of every subscription, by id."""
    identities: dict[int, bytes]
    """The identities of the filters that are known, by node. Identities depend on the attributes of
    the writers: see `ChangeLog`."""
    dialects: Dialects = {}
    """The dialects of the filters that are not written in SQL, by id."""
    owners: dict[Id, str] = {}
    """The owner of each subscription that was given one, by id. For a node that the rendezvous
    point created, the agent that first asked for it."""
    anonymous: frozenset[Id] = frozenset()
    """The ids of nodes that the rendezvous point created."""
    integer: bool = False
    """Whether the ids of nodes that the rendezvous point created are integers."""
    declared: StoredDeclaration = StoredDeclaration()
    """What the channel declares."""

    @property
    def named(self) -> list[Id]:
        """The ids of named subscriptions, without the nodes of the rendezvous point."""
        return [id_ for id_ in self.subscriptions if id_ not in self.anonymous]

    def dialect(self, id_: Id) -> str:
        """The dialect of a subscription's filter."""
        return self.dialects.get(id_, SQL)


class Repair(msgspec.Struct, frozen=True):
    """The result of a repair: the problems of the log, and the versions that were lost."""

    problems: list[str]
    """One sentence for each problem; if there is none, nothing was changed."""
    lost: list[tuple[int, int]]
    """Ranges of lost versions (first, last)."""
    version: int
    """The latest version now."""
    aside: str = ""
    """The folder with data that could not be kept in the log; empty if there is none."""


def change_of(record: ChangeRecord) -> Change:
    """A change as users get it."""
    return Change(
        record.version, record.id, record.filter, record.node, record.dialect, _name(record.owner)
    )


def read_state(found: JournalState) -> State:
    """The subscriptions of a state; each node of the rendezvous point counts as one."""
    subscriptions: Subscriptions = {}
    dialects: Dialects = {}
    owners: dict[Id, str] = {}
    for id_, one in found.subscriptions.items():
        subscriptions[id_] = one.filter, one.node
        if one.dialect != SQL:
            dialects[id_] = one.dialect
        if one.owner:
            owners[id_] = one.owner
    anonymous: list[Id] = []
    for node, it in own_part(found.nodes).items():
        if not it.named:
            text, dialect = decode_interest(it.interest)
            id_ = anonymous_id(node, integer=found.integer)
            anonymous.append(id_)
            subscriptions[id_] = text, node
            if dialect != SQL:
                dialects[id_] = dialect
            if it.owners:
                owners[id_] = ", ".join(map(_name, it.owners))
    return State(
        subscriptions, found.identities(), dialects, owners, frozenset(anonymous), found.integer,
        StoredDeclaration.decode(found.history.declaration),
    )  # fmt: skip


def _name(owner: str) -> str:
    return THE_CHANNEL if owner == CHANNEL else owner


def stored_filters(found: JournalState) -> Iterator[StoredFilter]:
    """The filters of all subscriptions, and of nodes that the rendezvous point created."""
    for id_, one in found.subscriptions.items():
        yield StoredFilter(f"the subscription {id_!r:.80}", one.filter, one.dialect)
    for node, it in own_part(found.nodes).items():
        if not it.named:
            yield StoredFilter(f"node {node}", *decode_interest(it.interest))
