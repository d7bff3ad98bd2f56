"""The changes that readers of a channel's log get, and the errors that reading a log can raise.

    entry (journal/entries.py)                      change
    ---------------------------------------------  -----------------------------------------------
    a named subscription is set or ended (rows)    its id, text, dialect and node
    the rendezvous point made a node               a subscription whose id is made from its number
    the rendezvous point removed such a node       that subscription ended
    subscriptions were adopted as a whole          none: readers get the entry itself, or
                                                   `AdoptedHere` if they want only changes
    the channel declared other attributes          none: readers get the entry itself

If the rendezvous point removes a node that a named subscription created, readers get no change,
because the subscriptions of the node had already ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from tidings.model import Id, TidingsError
from tidings.routing.protocol import unpack_interest
from tidings.store.groups import Walk
from tidings.store.journal import entries as t
from tidings.store.journal.rows import SQL, SUBSCRIPTIONS, Rows, decode_rows

SEGMENT_BYTES = 8 << 20


class LogError(TidingsError):
    """A log is damaged, can't be read or written, or lacks the requested version."""


class AdoptedHere(LogError):
    """A version adopted a whole snapshot, whose subscriptions are not listed as changes."""

    def __init__(self, one: t.Adopted) -> None:
        super().__init__(
            f"version {one.version} adopted a whole snapshot, with the nodes from {one.first} on, "
            "and does not list its subscriptions as changes; read the subscriptions at that "
            "version instead"
        )
        self.version = one.version


class Gap(Exception):
    """Changes before a version were lost, and the log was repaired."""

    def __init__(self, version: int) -> None:
        self.version = version


class ChangeRecord(msgspec.Struct, frozen=True, gc=False):
    """A change, and the identity of its filter if its node is new."""

    version: int
    id: Id
    filter: str | None
    node: int
    key: bytes | None = None
    dialect: str = SQL
    owner: str = ""


Found = ChangeRecord | t.Adopted | t.Renewed


def changes_in(records: Iterable[bytes | None], after: int = 0) -> Iterator[Found]:
    """The changes, adoptions and declarations in the records of a group, in order. Raises Gap if
    the version `after`, or changes after it, were lost."""
    for data in records:
        kind = b"" if data is None else data[:1]
        if data is None or kind == t.NOTIFICATION:
            continue
        if kind == SUBSCRIPTIONS:
            rows = decode_rows(data)
            for version, one in enumerate(rows.rows, rows.first):
                yield ChangeRecord(
                    version, one.id, one.filter, one.node, one.key, one.dialect, one.owner
                )
            continue
        thing = t.decode_small(data)
        if isinstance(thing, t.Added):
            id_ = t.anonymous_id(thing.node, integer=thing.integer)
            text, dialect = decode_interest(thing.interest)
            yield ChangeRecord(
                thing.node, id_, text, thing.node, thing.key or None, dialect, thing.owner
            )
        elif isinstance(thing, t.Dropped) and not thing.named and thing.gone.version:
            id_ = t.anonymous_id(thing.node, integer=thing.integer)
            yield ChangeRecord(thing.gone.version, id_, None, 0)
        elif isinstance(thing, t.Adopted | t.Renewed):
            yield thing
        elif isinstance(thing, t.Repaired) and any(last >= after for _, last in thing.lost):
            raise Gap(thing.version)


def decode_interest(interest: bytes) -> tuple[str, str]:
    """The text of a stored interest, and its dialect."""
    text, dialect = unpack_interest(interest)
    return text.decode(errors="replace"), dialect


def last_version(records: Iterable[bytes]) -> int:
    """The highest version among the entries of a group; 0 if no entry has one."""
    found = 0
    for data in records:
        if data[:1] == t.NOTIFICATION:
            continue
        thing = t.decode_small(data)
        if isinstance(thing, Rows):
            found = max(found, thing.first + len(thing.rows) - 1)
        else:
            found = max(found, t.version_of(thing))
    return found


def read_groups(walk: Walk, version: int, after: int, folder: Path, last: int) -> Iterator[Found]:
    """The changes, adoptions and declarations after the version `after`, from a walk that begins at
    `version`; raises LogError at the first damage, and Gap if changes were lost. `last` is the
    latest acknowledged version."""
    for group in walk:
        if walk.damages:
            break
        for one in changes_in(group.records, after):
            version = one.version
            if version > after:
                yield one
    if walk.damages:
        raise damage_error(folder, walk.damages[0], version, last)


def damage_error(folder: Path, problem: str, good: int, last: int) -> LogError:
    """An error that says what is wrong with a log, what can't be read, and what to do."""
    gone = f"; of its {last:,} versions, those after {good:,} can't be read" if good < last else ""
    return LogError(
        f"the log is damaged: {problem}{gone}; restore '{folder}' from a backup, or run "
        f"`tidings subscriptions repair {folder}`, which keeps the readable changes"
    )
