"""A signed grant: an agent may subscribe to a node until the grant expires.

    64 bytes: Ed25519 signature   of   "tidings grant 1" and the rest: the grant in MessagePack

A preprocessor signs grants, and the router to which the agent is linked checks them. Only the
encoding is here; keys and signatures are in broker/admission/signing.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import msgspec

from tidings.routing.protocol import messages as m
from tidings.routing.protocol.messages import KEY_ID
from tidings.routing.protocol.signed_bodies import SignedBodies


class Grant(msgspec.Struct, frozen=True, array_like=True):
    """The content of a signed grant. The node number is valid in lineages that contain the life
    (lineage.py)."""

    key: Annotated[bytes, msgspec.Meta(min_length=KEY_ID, max_length=KEY_ID)]
    agent: m.PartyName  # the owner of the agent's subscriptions, as its router knows it
    channel: m.PartyName
    life: m.Number
    node: m.Number
    expires: m.Number  # seconds since 1970
    within: m.Within
    """The filters that cover the node: the limits of the agent or, if it has none, the filter of
    the node itself."""


_SIGNED = SignedBodies(Grant, b"tidings grant 1\0")


def pack_grant(grant: Grant, sign: Callable[[bytes], bytes]) -> bytes:
    """A grant with its signature; `sign` computes signatures."""
    return _SIGNED.pack(grant, sign)


def split_grant(data: bytes) -> tuple[bytes, bytes]:
    """The signature of a grant, and the bytes that were signed."""
    return _SIGNED.split(data)


def unpack_grant(data: bytes) -> Grant | None:
    """The grant in these bytes, or None if they are not a grant. The signature is not checked."""
    return _SIGNED.unpack(data)
