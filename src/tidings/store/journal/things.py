"""The things that a rendezvous point records, as records of a log of groups.

    notification   N, serial, stamp, sizes; publisher; marks (node, number); matched nodes; payload
    all else       T and a tagged array in MessagePack

Nearly all things are notifications, so their layout allows many to be read at once: see state.py. A
notification without marks is stored without its payload, because nobody can ask for it.
"""

from __future__ import annotations

import struct

import msgspec

from tidings.routing.protocol import Mark, pack_marks
from tidings.routing.root import Record

NOTIFICATION, THING = b"N", b"T"
HEAD = struct.Struct("<cqqIII")  # kind, serial, stamp, bytes of the publisher, marks, matched


class Life(msgspec.Struct, frozen=True, array_like=True, tag="life"):
    """A start of the rendezvous point; its serials begin with `first`. `broken` is set after a
    loss: this life is the first of a new lineage, and earlier lives no longer count."""

    life: int
    first: int
    broken: bool = False


class Added(msgspec.Struct, frozen=True, array_like=True, tag="added"):
    node: int
    interest: bytes
    owner: str = ""


class Owned(msgspec.Struct, frozen=True, array_like=True, tag="owned"):
    node: int
    owners: tuple[str, ...]


class Dropped(msgspec.Struct, frozen=True, array_like=True, tag="dropped"):
    node: int


class Forgotten(msgspec.Struct, frozen=True, array_like=True, tag="forgotten"):
    """Publishers whose stamps are not needed any more."""

    publishers: tuple[str, ...]


Small = Life | Added | Owned | Dropped | Forgotten
Thing = Small | Record

_encode = msgspec.msgpack.Encoder().encode
_decoder: msgspec.msgpack.Decoder[Small] = msgspec.msgpack.Decoder(Small)


def encode(thing: Thing) -> bytes:
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


def decode(data: bytes) -> Thing:
    """Decode a record; ValueError if its kind is unknown because a later version wrote it."""
    if data[:1] == NOTIFICATION:
        return decode_notification(data)
    if data[:1] != THING:
        raise ValueError(
            f"found a record of kind {data[:1]!r}, expected {NOTIFICATION!r} or {THING!r}"
        )
    return _decoder.decode(data[1:])


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
