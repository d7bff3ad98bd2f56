"""The messages of the handover to a rendezvous point; handover.py describes the protocol.

On the wire each message is MessagePack, preceded by its length in four bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Generic, NamedTuple, TypeVar

import msgspec

Message = TypeVar("Message")

LARGEST = 64 * 1024 * 1024
"""The size limit of a message in bytes. A larger length means that the sender speaks another
protocol."""

_LENGTH = struct.Struct(">I")


class Part(NamedTuple):
    """The rows that one task sent: its partition, the successful attempt, the number of rows."""

    partition: int
    attempt: int
    rows: int


class Rows(msgspec.Struct, frozen=True, array_like=True, tag="rows"):
    """Rows of a partition; `first` is the position of the first one in the partition, from 0."""

    stream: str
    batch: int
    partition: int
    attempt: int
    first: int
    payloads: list[bytes]


class Commit(msgspec.Struct, frozen=True, array_like=True, tag="commit"):
    """The batch consists of these parts."""

    stream: str
    batch: int
    parts: list[Part]


class Abort(msgspec.Struct, frozen=True, array_like=True, tag="abort"):
    """Drop the rows received for the batch, unless it is committed."""

    stream: str
    batch: int


class Ask(msgspec.Struct, frozen=True, array_like=True, tag="ask"):
    """Is the batch committed?"""

    stream: str
    batch: int


class Kept(msgspec.Struct, frozen=True, array_like=True, tag="kept"):
    """The first `count` rows of the attempt are durable."""

    stream: str
    batch: int
    partition: int
    attempt: int
    count: int


class Committed(msgspec.Struct, frozen=True, array_like=True, tag="committed"):
    """The batch is delivered, or certainly will be."""

    stream: str
    batch: int


class Pending(msgspec.Struct, frozen=True, array_like=True, tag="pending"):
    """The batch is not committed."""

    stream: str
    batch: int


class Missing(msgspec.Struct, frozen=True, array_like=True, tag="missing"):
    """The batch cannot be committed: the point lacks rows of these parts."""

    stream: str
    batch: int
    parts: list[Part]


Request = Rows | Commit | Abort | Ask
Reply = Kept | Committed | Pending | Missing


def frame(message: Request | Reply) -> bytes:
    """Encode a message for the wire."""
    body = msgspec.msgpack.encode(message)
    return _LENGTH.pack(len(body)) + body


class Frames(Generic[Message]):
    """Decodes a stream of bytes into messages of one kind. Raises ValueError for bytes that are not
    such a message."""

    def __init__(self, kind: object) -> None:
        self._decoder: msgspec.msgpack.Decoder[Message] = msgspec.msgpack.Decoder(kind)
        self._bytes = bytearray()

    def feed(self, data: bytes) -> Iterator[Message]:
        self._bytes += data
        while len(self._bytes) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._bytes)
            if length > LARGEST:
                raise ValueError(f"found a message of {length} bytes, expected at most {LARGEST}")
            end = _LENGTH.size + length
            if len(self._bytes) < end:
                return
            body = bytes(self._bytes[_LENGTH.size : end])
            del self._bytes[:end]
            try:
                message = self._decoder.decode(body)
            except msgspec.DecodeError as error:
                raise ValueError(f"a message cannot be decoded: {error}") from error
            yield message
