"""Changes to named subscriptions, as records of a log of groups.

    group    changes acknowledged together: all of them are stored, or none
    record   S [version of the first, [[id, text, node, identity, dialect, ended, owner], ...]]
                                            |     |      |         |        |      who made it; left
                                            |     |      |         |        |      out: nobody said
                                            |     |      |         |        a node that ended with
                                            |     |      |         |        this change; left out: 0
                                            |     |      |         left out if it is SQL
                                            |     |      of the filter, if its node is new
                                            |     0 if the subscription ended
                                            null if the subscription ended

A record has up to 256 changes, so a corrupt record affects only a few changes, and the records
around it show which changes these are. Each change has the next version. The number of a new node
is the version of its change; logs that were converted from an older format have lower numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tidings.model import Id

SUBSCRIPTIONS = b"S"
SQL = "sql"  # the dialect of a filter without a stored dialect
MOST = 256  # a record has at most this many changes

Entry = (
    tuple[Id, str | None, int, bytes | None]
    | tuple[Id, str | None, int, bytes | None, str]
    | tuple[Id, str | None, int, bytes | None, str, int]
    | tuple[Id, str | None, int, bytes | None, str, int, str]
)


class Row(msgspec.Struct, frozen=True, gc=False, array_like=True, forbid_unknown_fields=True):
    """A change as it is stored; its version follows from its position in the record."""

    id: Id
    filter: str | None
    node: int
    key: bytes | None
    dialect: str = SQL
    ended: int = 0
    owner: str = ""


class Rows(msgspec.Struct, frozen=True, array_like=True):
    """The changes of a record, and the version of the first change."""

    first: int
    rows: list[Row]


_encode = msgspec.msgpack.Encoder().encode
_decoder = msgspec.msgpack.Decoder(Rows)


def entry_of(
    id_: Id,
    text: str | None,
    node: int,
    key: bytes | None,
    dialect: str = SQL,
    ended: int = 0,
    owner: str = "",
) -> Entry:
    """A change as it is stored."""
    if owner:
        return id_, text, node, key, dialect, ended, owner
    if ended:
        return id_, text, node, key, dialect, ended
    return (id_, text, node, key) if dialect == SQL else (id_, text, node, key, dialect)


def encode_rows(first: int, entries: Sequence[Entry]) -> list[bytes]:
    """Encode changes as the records of a group; `first` is the version of the first change."""
    starts = range(0, len(entries), MOST)
    return [SUBSCRIPTIONS + _encode((first + at, entries[at : at + MOST])) for at in starts]


def decode_rows(record: bytes) -> Rows:
    return _decoder.decode(memoryview(record)[1:])
