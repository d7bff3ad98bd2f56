"""The body of a notification: its payload, and what its publisher tells subscribers about it.

    payload                                        nothing is told: the body is the payload itself
    MAGIC, u32 size, about in MessagePack, payload

Journals, caches and routers treat a body as bytes, so what is told costs them only its size. A
payload that begins with MAGIC is always put behind an `About`, so there is no doubt what a body is.
No text in UTF-8 begins with MAGIC.

A payload that does not fit into a frame is published in pieces, each of them a notification with
the same attributes. `piece` then says which one this is.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

import msgspec

from tidings.routing.protocol import messages as m

MAGIC = b"\xf5tidings"
_SIZE = struct.Struct("<I")
_FRONT = len(MAGIC) + _SIZE.size


class Piece(NamedTuple):
    """A piece of a payload: the stamp of the first piece, its position, and how many there are."""

    first: m.Number
    at: m.Number
    of: m.Number


class About(msgspec.Struct, frozen=True, array_like=True):
    """What is told about a notification."""

    content: bytes | None = None  # its attributes, as they were published
    subject: str = ""
    time: m.Number = 0  # when it was published, in microseconds since 1970
    piece: Piece | None = None


NOTHING = About()
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(About).decode


def wrap(about: About, payload: bytes) -> bytes:
    """The body of a notification."""
    if about == NOTHING and payload[: len(MAGIC)] != MAGIC:
        return payload
    told = _encode(about)
    return b"".join((MAGIC, _SIZE.pack(len(told)), told, payload))


def body_of(message: m.Publish) -> bytes:
    """The body of a publication."""
    if not message.about and message.payload[: len(MAGIC)] != MAGIC:
        return message.payload
    return wrap(
        About(
            message.content if message.shares else None, message.subject, message.time,
            message.piece and Piece(*message.piece),
        ),
        message.payload,
    )  # fmt: skip


def unwrap(body: bytes) -> tuple[About, bytes]:
    """What is told about a notification, and its payload. A body that only looks like one with
    something told is all payload."""
    if body[: len(MAGIC)] != MAGIC or len(body) < _FRONT:
        return NOTHING, body
    (size,) = _SIZE.unpack_from(body, len(MAGIC))
    try:
        about = _decode(memoryview(body)[_FRONT : _FRONT + size])
    except (msgspec.DecodeError, ValueError, RecursionError):
        return NOTHING, body
    return about, body[_FRONT + size :]
