"""A ticket: the name and the rights of a client, signed by the node to which it is linked.

    64 bytes: Ed25519 signature   of   "tidings ticket 1" and the rest: the ticket in MessagePack

A client shows its ticket to preprocessors, which therefore need not see its token. Only the
encoding is here; keys and signatures are in broker/admission/signing.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import msgspec

from tidings.routing.protocol import messages as m
from tidings.routing.protocol.messages import KEY_ID
from tidings.routing.protocol.signed_bodies import SignedBodies


class Ticket(msgspec.Struct, frozen=True, array_like=True):
    """What a node states about one of its clients."""

    key: Annotated[bytes, msgspec.Meta(min_length=KEY_ID, max_length=KEY_ID)]
    name: m.PartyName
    owner: m.PartyName  # the owner of the client's subscriptions
    channel: m.PartyName
    expires: m.Number  # seconds since 1970
    may: tuple[m.PartyName, ...]  # rights
    within: Annotated[str, msgspec.Meta(max_length=m.LONGEST_WITHIN)] = ""
    """A filter that must cover all filters of the client."""

    @property
    def bound(self) -> bool:
        """Whether the name is reserved for this client."""
        return self.owner == self.name


_SIGNED = SignedBodies(Ticket, b"tidings ticket 1\0")


def pack_ticket(ticket: Ticket, sign: Callable[[bytes], bytes]) -> bytes:
    """A ticket with its signature; `sign` computes signatures."""
    return _SIGNED.pack(ticket, sign)


def split_ticket(data: bytes) -> tuple[bytes, bytes]:
    """The signature of a ticket, and the bytes that were signed."""
    return _SIGNED.split(data)


def unpack_ticket(data: bytes) -> Ticket | None:
    """The ticket in these bytes, or None if they are not a ticket. The signature is not checked."""
    return _SIGNED.unpack(data)
