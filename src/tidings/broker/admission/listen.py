"""Where others come in, and who may."""

from __future__ import annotations

import ssl

import msgspec

from tidings.broker.admission.permissions import Tokens
from tidings.network import Policy
from tidings.routing.protocol import Limits

UPSTREAM = "<upstream>"  # no neighbour can have this name


class Address(msgspec.Struct, frozen=True):
    host: str
    port: int


class Door(msgspec.Struct, frozen=True):
    """How others come in: where, with which certificate of ours, and who may: with a token that is
    known, or, where certificates count, with one that has the name in it. Without tokens and
    certificates anybody may."""

    address: Address = Address("127.0.0.1", 0)
    tls: ssl.SSLContext | None = None
    tokens: Tokens | None = None
    certificates: bool = False
    channel: str = ""
    policy: Policy = Policy.DROP
    limits: Limits = Limits()

    @property
    def is_guarded(self) -> bool:
        return self.tokens is not None or self.certificates
