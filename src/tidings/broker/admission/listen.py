"""Where a node listens, and who may connect."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Annotated

import msgspec

from tidings.broker.admission.permissions import Tokens
from tidings.network import Policy
from tidings.routing.protocol import Limits

EVERYWHERE = ("0.0.0.0", "::", "")  # with such a host, a server listens on all addresses
UPSTREAM = "<upstream>"  # no neighbour can have this name


class Address(msgspec.Struct, frozen=True):
    host: str
    port: int


class Direct(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The agents to which a rendezvous point offers links that bypass the tree. For each agent, the
    neighbours that get the same notifications are counted, over all nodes from the agent's router
    to the rendezvous point; the agent itself counts too. An agent gets an offer if the count is at
    most `most`; with 0, no agent gets an offer. There are at most `links` such links. `address` is
    the address at which agents reach the rendezvous point, if it differs from the address on which
    the rendezvous point listens."""

    most: Annotated[int, msgspec.Meta(ge=0, le=1000)]
    address: str = ""
    links: Annotated[int, msgspec.Meta(ge=1)] = 1000


class Door(msgspec.Struct, frozen=True):
    """Where a node listens, with which certificate, and who may connect.

    Clients need a known token or, if `certificates` is set, a certificate with their name, or a
    ticket that was signed with one of the keys in `tickets`. If none of these are configured,
    anybody may connect."""

    address: Address = Address("127.0.0.1", 0)
    tls: ssl.SSLContext | None = None
    tokens: Tokens | None = None
    certificates: bool = False
    channel: str = ""
    policy: Policy = Policy.DROP
    limits: Limits = Limits()
    keys: Mapping[str, str] | None = None  # public keys whose grants are accepted, by name
    tickets: Mapping[str, str] | None = None  # public keys whose tickets are accepted, by name
    public: str | None = None  # the HOST:PORT by which agents reach the node; empty for none
    ticket_key: str = ""  # the private key with which the node signs tickets; empty for none

    def address_at(self, port: int) -> str:
        """The address by which agents reach the node, which listens on `port`. Empty if agents
        should not connect to the node, or if its address is not known."""
        place = self.public
        if place is None and self.address.host not in EVERYWHERE:
            host = self.address.host
            place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        return f"{'tidings' if self.tls is None else 'tidings+tls'}://{place}" if place else ""

    @property
    def is_guarded(self) -> bool:
        return self.tokens is not None or self.certificates or self.tickets is not None
