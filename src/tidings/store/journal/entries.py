"""The entries of a channel's log, as records of a log of groups.

    notification   N, serial, stamp, sizes; publisher; marks (node, number); matched nodes; payload
    block          its notifications, each a record as above, and how far the source of a part came
    subscriptions  S and up to 256 changes to named subscriptions: see rows.py
    all else       T and a tagged array in MessagePack

Nearly all records are notifications, so their layout allows many of them to be read at once: see
state.py. A notification without marks is stored without its payload, because nobody can ask for it.
"""

from __future__ import annotations

import struct

import msgspec

from tidings.model import Id
from tidings.routing.protocol import Mark, pack_marks
from tidings.routing.root import Block, Cursor, Progress, Record, RemovedNode
from tidings.store.journal.rows import SUBSCRIPTIONS, Rows, decode_rows

NOTIFICATION, THING = b"N", b"T"
# kind, serial, stamp; length of the publisher's name; counts of marks and of matched nodes
HEAD = struct.Struct("<cqqIII")


class Life(msgspec.Struct, frozen=True, array_like=True, tag="life"):
    """A start of the rendezvous point; its serials begin with `first`. `broken` is set after a
    loss: this life is the first of a new lineage, and earlier lives no longer count. In this life,
    changes to nodes get versions above `base`."""

    life: int
    first: int
    broken: bool = False
    base: int = 0


class Added(msgspec.Struct, frozen=True, array_like=True, tag="added"):
    """A node that the rendezvous point created. `key` is the identity of the node; journals of
    older releases don't have it. `integer` is set if the ids of subscriptions are integers: see
    `anonymous_id`."""

    node: int
    interest: bytes
    owner: str = ""
    key: bytes = b""
    integer: bool = False


class Adopted(msgspec.Struct, frozen=True, array_like=True, tag="adopted"):
    """Subscriptions that were adopted as a whole. Their nodes have the numbers from `first` to
    `version`, and the bulk `name` has everything else; `identity` is the identity of the adopted
    snapshot, and `many` is the number of its subscriptions."""

    first: int
    version: int
    name: str
    identity: str
    owner: str = ""
    many: int = 0


class Owned(msgspec.Struct, frozen=True, array_like=True, tag="owned"):
    node: int
    owners: tuple[str, ...]


class Dropped(msgspec.Struct, frozen=True, array_like=True, tag="dropped"):
    """A node that was removed. In journals of older releases, the version of the removal is 0, and
    the neighbourhood of the node is unknown. `named` is set if a named subscription created the
    node."""

    node: int
    gone: RemovedNode = RemovedNode(0)
    named: bool = False
    integer: bool = False


class Taken(msgspec.Struct, frozen=True, array_like=True, tag="taken"):
    """How far a source has handed over its notifications. The progress of a source is in the same
    group as the notifications."""

    source: str
    progress: Progress


class Renewed(msgspec.Struct, frozen=True, array_like=True, tag="renewed"):
    """Filters are interpreted differently from this version on: other attributes are declared,
    or stored filters are now refused."""

    version: int
    hidden: tuple[int, ...]
    declaration: str


class At(msgspec.Struct, frozen=True, array_like=True, tag="at"):
    """The version that the log had before the group that contains this entry. The first group of
    each segment has such an entry, so that readers can begin with any segment."""

    version: int


class Repaired(msgspec.Struct, frozen=True, array_like=True, tag="repaired"):
    """Data was lost, and the log continues with this version. `lost` has the ranges of versions
    (first, last) whose changes can't be read. The next life begins a new lineage."""

    version: int
    lost: tuple[tuple[int, int], ...]


class Forgotten(msgspec.Struct, frozen=True, array_like=True, tag="forgotten"):
    """The stamps of these publishers are not needed any more."""

    publishers: tuple[str, ...]


class Named(msgspec.Struct, frozen=True, array_like=True, tag="named"):
    """The cursor of a named subscription; None when it was dropped."""

    key: str
    cursor: Cursor | None


class Confirmed(msgspec.Struct, frozen=True, array_like=True, tag="confirmed"):
    """A cursor moved forward; `counts` has the counts that changed. Journals of older releases
    don't have `upto` and `gaps`."""

    key: str
    serial: int
    total: int
    counts: dict[int, int]
    upto: int = 0
    gaps: tuple[int, ...] = ()


Small = (
    Life | Added | Adopted | Owned | Dropped | Forgotten | Taken | Renewed | Named | Confirmed | At
    | Repaired
)  # fmt: skip
JournalEntry = Small | Record | Block | Rows

_encode = msgspec.msgpack.Encoder().encode
_decoder: msgspec.msgpack.Decoder[Small] = msgspec.msgpack.Decoder(Small)


def encode(thing: Small | Record) -> bytes:
    if not isinstance(thing, Record):
        return THING + _encode(thing)
    publisher, marks, matched = thing.publisher.encode(), thing.marks, thing.matched
    return b"".join(
        (
            HEAD.pack(NOTIFICATION, thing.serial, thing.stamp, len(publisher), len(marks),
                      len(matched)),
            publisher,
            pack_marks(marks),
            struct.pack(f"<{len(matched)}q", *matched),
            thing.payload if marks else b"",
        )
    )  # fmt: skip


def decode(data: bytes) -> Small | Record | Rows:
    """Decode a record; raises ValueError if its kind is unknown because a later version wrote
    it."""
    return decode_notification(data) if data[:1] == NOTIFICATION else decode_small(data)


def decode_small(data: bytes) -> Small | Rows:
    """Like `decode`, for a record that is not a notification."""
    if data[:1] == SUBSCRIPTIONS:
        return decode_rows(data)
    if data[:1] != THING:
        raise ValueError(
            f"found a record of kind {data[:1]!r}, expected {NOTIFICATION!r}, {SUBSCRIPTIONS!r} "
            f"or {THING!r}"
        )
    return _decoder.decode(data[1:])


def version_of(thing: JournalEntry) -> int:
    """The version of a change to a node or to the definition, or the last version of changes to
    subscriptions; 0 for all other entries."""
    if isinstance(thing, Rows):
        return thing.first + len(thing.rows) - 1
    if isinstance(thing, Added):
        return thing.node
    if isinstance(thing, Dropped):
        return thing.gone.version
    return thing.version if isinstance(thing, Renewed | Repaired | Adopted) else 0


def anonymous_id(node: int, *, integer: bool) -> Id:
    """The id that pipelines use for a node that the rendezvous point created. The ids of all
    subscriptions of a channel have the same type, string or integer."""
    return -node if integer else f"node {node}"


def decode_notification(data: bytes) -> Record:
    _, serial, stamp, name, marks, matched = HEAD.unpack_from(data)
    start = HEAD.size + name
    numbers = struct.unpack_from(f"<{2 * marks + matched}q", data, start)
    return Record(
        serial,
        data[HEAD.size : start].decode(),
        stamp,
        tuple(
            Mark(node, number, (node,))
            for node, number in zip(numbers[: 2 * marks : 2], numbers[1 : 2 * marks : 2],
                                    strict=True)
        ),
        numbers[2 * marks :],
        data[start + 8 * len(numbers) :],
    )  # fmt: skip
