"""Changes as the records of a log of groups.

    group    changes acknowledged together: all of them are stored, or none
    record   [version of the first, [[id, text, node, identity, dialect], ...]]   up to 256 changes
                                         |     |     |         left out if it is SQL
                                         |     |     of the filter, if its node is new
                                         |     0 if the subscription ended
                                         null if the subscription ended

Changes from earlier versions of tidings have no dialect; they are SQL. So a corrupt record affects
only a few changes, and the records around it show which ones. When all files with older changes are
dropped, a group with an empty record keeps the latest version.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from tidings.model import Id, TidingsError
from tidings.store.groups import GroupLog, Position, Walk

CHANGES = "changes"  # the log of groups, in the folder of a change log
SEGMENT_BYTES = 8 << 20
MOST = 256  # the most changes in a record

SQL = "sql"  # the dialect of a filter without a stored dialect

Entry = tuple[Id, str | None, int, bytes | None] | tuple[Id, str | None, int, bytes | None, str]


class LogError(TidingsError):
    """A log is damaged, can't be read or written, or lacks the requested version."""


class Record(msgspec.Struct, frozen=True, gc=False):
    """A change, and the identity of its filter if its node is new."""

    version: int
    id: Id
    filter: str | None
    node: int
    key: bytes | None = None
    dialect: str = SQL

    @property
    def entry(self) -> Entry:
        return entry_of(self.id, self.filter, self.node, self.key, self.dialect)


class _Stored(msgspec.Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """A change as it is stored; its version follows from its position in the record."""

    id: Id
    filter: str | None
    node: int
    key: bytes | None
    dialect: str = SQL


class Point(msgspec.Struct, frozen=True):
    """The end of a group, and the last version up to that end."""

    version: int
    at: Position


_encode = msgspec.msgpack.Encoder().encode
_decoder = msgspec.msgpack.Decoder(tuple[int, list[_Stored]])


def entry_of(id_: Id, text: str | None, node: int, key: bytes | None, dialect: str = SQL) -> Entry:
    """A change as it is stored."""
    return (id_, text, node, key) if dialect == SQL else (id_, text, node, key, dialect)


def encode_changes(first: int, entries: Sequence[Entry]) -> list[bytes]:
    """Encode changes as the records of a group; `first` is the version of the first change."""
    starts = range(0, len(entries) or 1, MOST)
    return [_encode((first + at, entries[at : at + MOST])) for at in starts]


def decode_changes(record: bytes) -> tuple[int, list[Record]]:
    """The first version of a record, and its changes."""
    first, entries = _decoder.decode(record)
    return first, [
        Record(first + at, one.id, one.filter, one.node, one.key, one.dialect)
        for at, one in enumerate(entries)
    ]


def begin_log(folder: Path) -> GroupLog:
    """A new log of groups in a folder, ready for appending."""
    log = GroupLog(folder, segment_bytes=SEGMENT_BYTES)
    walk = log.walk()
    for _ in walk:
        pass
    log.take_end(walk)
    return log


def read_groups(
    walk: Walk, version: int, folder: Path, last: int
) -> Iterator[tuple[Point, list[Record]]]:
    """The groups of a walk that begins after a version, each with the point after it; raises
    LogError at the first damage. `last` is the latest acknowledged version."""
    for group in walk:
        found: list[Record] = []
        for record in group.records:
            if record is None or walk.damages:
                break
            first, some = decode_changes(record)
            if first != version + 1:
                problem = (
                    f"group {group.number} has a record of version {first}, expected version "
                    f"{version + 1}"
                )
                raise damage_error(folder, problem, version, last)
            found += some
            version += len(some)
        if walk.damages:
            raise damage_error(folder, walk.damages[0], version - len(found), last)
        yield Point(version, group.end), found
    if walk.damages:
        raise damage_error(folder, walk.damages[0], version, last)


def damage_error(folder: Path, problem: str, good: int, last: int) -> LogError:
    """An error that says what is wrong with a log, what can't be read, and what to do."""
    gone = f"; of its {last:,} versions, those after {good:,} can't be read" if good < last else ""
    return LogError(
        f"the log is damaged: {problem}{gone}; restore '{folder}' from a backup, or run "
        f"`tidings subscriptions repair {folder}`, which keeps the readable changes"
    )
