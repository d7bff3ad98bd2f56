"""The body of a notification: its payload, and metadata that the publisher sends to subscribers.

    payload                                        without metadata, the body is the payload
    MAGIC, u32 size, About in MessagePack, payload

Journals, caches and routers treat a body as bytes, so they need not know about metadata. A payload
that itself begins with MAGIC is always put after an `About`, so no body is ambiguous. No text in
UTF-8 begins with MAGIC. In a channel with relations, more bytes may precede the body; see
envelopes.py.

A payload that does not fit into a frame is published in pieces. Each piece is a notification with
the same attributes, and its `About` says which piece it is. If the channel does not keep the order
of publishers, the rendezvous point says so in the `About` of each piece. A pipeline sends a long
row in pieces too. It does not know the stamps of its rows: in its pieces, the stamp of the first
piece is 0, and the rendezvous point puts in the stamp that it gives.

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
    """A piece of a payload: the stamp of the first piece (0 if it is not known yet), the position
    of this piece, and the number of pieces."""

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
    """The attributes in the body of a notification; empty if subscribers don't get attributes. A
    piece of a row has only a part of the attributes, so the result is empty for it too."""
    about, payload = unwrap(body)
    if about.types is None:
        return about.content or b""
    return payload if about.piece is None else b""


def number_piece(body: bytes, stamp: int) -> bytes:
    """The body of a notification with this stamp. If the body is a piece that does not know the
    stamp of the first piece, that stamp is put in; other bodies are returned unchanged."""
    about, at = read_about(body)
    piece = about.piece
    if piece is None or piece.first or piece.at >= stamp:
        return body
    known = piece._replace(first=stamp - piece.at)
    return wrap(msgspec.structs.replace(about, piece=known), body[at:])


def unwrap(body: bytes) -> tuple[About, bytes]:
    """The metadata and the payload of a body. If the metadata can't be decoded, the whole body is
    the payload."""
    body = open_body(body)[1]
    about, at = read_about(body)
    return about, body[at:]


def read_about(body: bytes) -> tuple[About, int]:
    """The metadata of a body without an envelope, and the position of its payload."""
    if body[: len(MAGIC)] != MAGIC or len(body) < _FRONT:
        return NOTHING, 0
    (size,) = _SIZE.unpack_from(body, len(MAGIC))
    try:
        about = _decode(memoryview(body)[_FRONT : _FRONT + size])
    except (msgspec.DecodeError, ValueError, RecursionError):
        return NOTHING, 0
    return about, _FRONT + size
