"""The body of a notification: its payload, and metadata that the publisher sends to subscribers.

    payload                                        without metadata, the body is the payload
    MAGIC, u32 size, About in MessagePack, payload

Journals, caches and routers treat a body as bytes, so they need not know about metadata. A payload
that itself begins with MAGIC is always put after an `About`, so no body is ambiguous. No text in
UTF-8 begins with MAGIC. In a channel with relations, more bytes may precede the body; see
envelopes.py.

A payload that does not fit into a frame is published in pieces. Each piece is a notification with
the same attributes, and its `About` says which piece it is. If the channel does not keep the order
of publishers, the rendezvous point says so in the `About` of each piece.

A row of a pipeline is sent as a JSON object, which is both the payload and the attributes. Its
`About` has the `types` of the fields whose types JSON can't express. Row bodies are made many at a
time; see spark/outbox/batches/row_bodies.py.
"""

from __future__ import annotations

import struct
from typing import Annotated, Any, NamedTuple

import msgspec

from tidings.routing.protocol import messages as m
from tidings.routing.protocol.contents.envelopes import MAGIC, open_body

_SIZE = struct.Struct("<I")
_FRONT = len(MAGIC) + _SIZE.size


class Piece(NamedTuple):
    """A piece of a payload: the stamp of the first piece, the position of this piece, and the
    number of pieces."""

    first: m.Number
    at: m.Number
    of: m.Number


Time = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]  # rows may be from before 1970


class About(msgspec.Struct, frozen=True, array_like=True):
    """The metadata of a notification."""

    content: bytes | None = None  # the attributes, as they were published
    subject: str = ""
    time: Time = 0  # when it was published, in microseconds since 1970
    piece: Piece | None = None
    types: dict[str, Any] | None = None
    """Set if the payload contains the attributes: see notifications/content_formats/row_content.py.
    """
    scattered: bool = False
    """The pieces may come in any order, and other publications may come between them."""


NOTHING = About()
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(About).decode


def wrap(about: About, payload: bytes) -> bytes:
    """The body of a notification."""
    if about == NOTHING and payload[: len(MAGIC)] != MAGIC:
        return payload
    # `scattered` is left out unless it is set, as in the bodies that run_kernels.py writes
    told = _encode(about if about.scattered else msgspec.structs.astuple(about)[:-1])
    return b"".join((MAGIC, _SIZE.pack(len(told)), told, payload))


def body_of(message: m.Publish, *, scattered: bool = False) -> bytes:
    """The body of a publication. `scattered` is recorded only if the publication is a piece."""
    if not message.about and message.payload[: len(MAGIC)] != MAGIC:
        return message.payload
    return wrap(
        About(
            message.content if message.shares else None, message.subject, message.time,
            message.piece and Piece(*message.piece),
            scattered=scattered and message.piece is not None,
        ),
        message.payload,
    )  # fmt: skip


def content_of(body: bytes) -> bytes:
    """The attributes in the body of a notification; empty if subscribers don't get attributes."""
    about, payload = unwrap(body)
    return payload if about.types is not None else about.content or b""


def unwrap(body: bytes) -> tuple[About, bytes]:
    """The metadata and the payload of a body. If the metadata can't be decoded, the whole body is
    the payload."""
    body = open_body(body)[1]
    if body[: len(MAGIC)] != MAGIC or len(body) < _FRONT:
        return NOTHING, body
    (size,) = _SIZE.unpack_from(body, len(MAGIC))
    try:
        about = _decode(memoryview(body)[_FRONT : _FRONT + size])
    except (msgspec.DecodeError, ValueError, RecursionError):
        return NOTHING, body
    return about, body[_FRONT + size :]
