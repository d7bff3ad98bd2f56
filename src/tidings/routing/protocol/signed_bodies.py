"""Signed bytes: a signature, and a body in MessagePack. Grants and tickets are such bytes.

    64 bytes: Ed25519 signature   of   the purpose and the body

No signature can be used for another purpose, because the signed data begins with the purpose.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

import msgspec

from tidings.routing.protocol.messages import SIGNATURE

Body = TypeVar("Body", bound=msgspec.Struct)


class SignedBodies(Generic[Body]):
    """Packs and unpacks bodies of one kind, for one purpose. Signatures are not checked here."""

    def __init__(self, kind: type[Body], purpose: bytes) -> None:
        self._purpose = purpose
        self._decoder = msgspec.msgpack.Decoder(kind)

    def pack(self, body: Body, sign: Callable[[bytes], bytes]) -> bytes:
        """A body with its signature; `sign` computes signatures."""
        data = msgspec.msgpack.encode(body)
        return sign(self._purpose + data) + data

    def split(self, data: bytes) -> tuple[bytes, bytes]:
        """The signature, and the bytes that were signed."""
        return data[:SIGNATURE], self._purpose + data[SIGNATURE:]

    def unpack(self, data: bytes) -> Body | None:
        """The body in these bytes, or None if they contain none of this kind."""
        try:
            return self._decoder.decode(data[SIGNATURE:])
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return None
