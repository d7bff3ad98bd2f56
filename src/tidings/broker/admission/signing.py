"""Keys that sign grants and tickets, and keys that check them.

    tidings key FILE ──> FILE: the private key, for `tidings preprocessor --key FILE`
                    └──> the public key, for `[grants]` in the files of routers

    tidings key FILE ──> FILE: the private key, for `ticket_key` in the file of a router
                    └──> the public key, for `[tickets]` in the file of a preprocessor

A router that knows the public key of a preprocessor accepts its grants, and a preprocessor that
knows the public key of a router accepts its tickets. The package `cryptography` is imported only by
processes that use grants or tickets. Cost: a tenth of a millisecond for each signature.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any

import msgspec

from tidings.model import EnvironmentProblem, TidingsError
from tidings.routing.protocol import (
    KEY_ID,
    Grant,
    Ticket,
    pack_grant,
    pack_ticket,
    split_grant,
    split_ticket,
    unpack_grant,
    unpack_ticket,
)

PRIVATE, PUBLIC = "ed25519-private:", "ed25519:"
LIFETIME = 3600.0  # seconds for which a grant is valid
TICKET_LIFETIME = 300.0  # seconds for which a ticket is valid
SKEW = 60.0  # seconds by which the clocks of two nodes may differ
_BYTES = 32  # of a key


class KeyProblem(TidingsError):
    """A key can't be used; the message says what was found and what was expected."""


def _ed25519() -> Any:
    try:
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError:
        raise EnvironmentProblem(
            "the package cryptography is not installed; install tidings with the extra "
            "`tidings[grants]`"
        ) from None
    return ed25519


def _read_key(text: str, prefix: str) -> bytes:
    what = "a private key" if prefix == PRIVATE else "a public key"
    expected = f"expected {what}: {prefix!r} and {_BYTES} bytes in base64, made by `tidings key`"
    if not text.startswith(prefix):
        other = PUBLIC if prefix == PRIVATE else PRIVATE
        found = "found a key of the other kind" if text.startswith(other) else "found other text"
        raise KeyProblem(f"{found}, {expected}")
    try:
        data = base64.b64decode(text[len(prefix) :], validate=True)
    except (binascii.Error, ValueError):
        raise KeyProblem(f"found a key that is not base64, {expected}") from None
    if len(data) != _BYTES:
        raise KeyProblem(f"found a key of {len(data)} bytes, {expected}")
    return data


def _write_key(prefix: str, data: bytes) -> str:
    return prefix + base64.b64encode(data).decode()


def identify(public: bytes) -> bytes:
    """The identity of a public key, by which grants refer to the key."""
    return sha256(public).digest()[:KEY_ID]


class Signer:
    """A private key, which signs grants or tickets."""

    def __init__(self, text: str) -> None:
        """`text` is the private key; raises KeyProblem if it is not a private key."""
        self._key = _ed25519().Ed25519PrivateKey.from_private_bytes(_read_key(text, PRIVATE))
        self._public: bytes = self._key.public_key().public_bytes_raw()
        self.identity = identify(self._public)

    @classmethod
    def generate(cls) -> tuple[str, str]:
        """A new private key, and its public key."""
        key = _ed25519().Ed25519PrivateKey.generate()
        public = key.public_key().public_bytes_raw()
        return _write_key(PRIVATE, key.private_bytes_raw()), _write_key(PUBLIC, public)

    @property
    def public(self) -> str:
        return _write_key(PUBLIC, self._public)

    def sign(self, grant: Grant) -> bytes:
        """The grant, with this key's identity and signature."""
        return pack_grant(msgspec.structs.replace(grant, key=self.identity), self._key.sign)

    def sign_ticket(self, ticket: Ticket) -> bytes:
        """The ticket, with this key's identity and signature."""
        return pack_ticket(msgspec.structs.replace(ticket, key=self.identity), self._key.sign)


class PublicKeys:
    """The public keys whose grants a router accepts, or whose tickets a preprocessor accepts."""

    def __init__(self, keys: Mapping[str, str] | None = None) -> None:
        """`keys` are public keys by name; raises KeyProblem if one is not a public key."""
        self._names: dict[bytes, str] = {}
        self._keys: dict[bytes, Any] = {}
        for name, text in (keys or {}).items():
            data = _read_key(text, PUBLIC)
            identity = identify(data)
            self._names[identity] = name
            self._keys[identity] = _ed25519().Ed25519PublicKey.from_public_bytes(data)

    def __contains__(self, identity: object) -> bool:
        return identity in self._keys

    def __len__(self) -> int:
        return len(self._keys)

    def judge(self, data: bytes, agent: str, channel: str, clock: float) -> Grant | str:
        """The grant in these bytes, or why it is refused. `agent` is the agent that presents the
        grant, and `clock` is in seconds since 1970."""
        grant = unpack_grant(data)
        if grant is None:
            return f"found {len(data):,} bytes that are not a grant, expected a signed grant"
        refusal = self._judge_signature("grant", grant.key, *split_grant(data))
        if refusal:
            return refusal
        if grant.agent != agent:
            return f"the grant is for {grant.agent[:80]!r}, but {agent[:80]!r} presents it"
        if grant.channel != channel:
            return f"the grant is for the channel {grant.channel[:80]!r}, expected {channel!r}"
        if clock >= grant.expires:
            return f"the grant expired {clock - grant.expires:,.0f} seconds ago; ask for another"
        if grant.expires - clock > LIFETIME + SKEW:
            return (
                f"the grant expires in {grant.expires - clock:,.0f} seconds, expected at most "
                f"{LIFETIME:,.0f}"
            )
        return grant

    def _judge_signature(self, what: str, identity: bytes, signature: bytes, body: bytes) -> str:
        """Why the signature of a grant or a ticket is refused; empty if it is valid."""
        key = self._keys.get(identity)
        if key is None:
            known = ", ".join(sorted(self._names.values())) or "none"
            return (
                f"the {what} is signed with a key that is not known here; expected one of the keys "
                f"in [{what}s]: {known}"
            )
        if not _is_signed(key, signature, body):
            return f"the {what} is not signed with the key of {self._names[identity]!r}"
        return ""

    def judge_ticket(self, data: bytes, name: str, channel: str, clock: float) -> Ticket | str:
        """The ticket in these bytes, or why it is refused. `name` is the name of the client that
        shows the ticket, and `clock` is in seconds since 1970."""
        ticket = unpack_ticket(data)
        if ticket is None:
            return f"found {len(data):,} bytes that are not a ticket, expected a signed ticket"
        refusal = self._judge_signature("ticket", ticket.key, *split_ticket(data))
        if refusal:
            return refusal
        if ticket.name != name:
            return f"the ticket is for {ticket.name[:80]!r}, but {name[:80]!r} shows it"
        if ticket.channel != channel:
            return f"the ticket is for the channel {ticket.channel[:80]!r}, expected {channel!r}"
        if clock >= ticket.expires + SKEW:
            return f"the ticket expired {clock - ticket.expires:,.0f} seconds ago; ask for another"
        if ticket.expires - clock > TICKET_LIFETIME + SKEW:
            return (
                f"the ticket expires in {ticket.expires - clock:,.0f} seconds, expected at most "
                f"{TICKET_LIFETIME:,.0f}"
            )
        return ticket


def _is_signed(key: Any, signature: bytes, data: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature

    try:
        key.verify(signature, data)
    except InvalidSignature:
        return False
    return True


def find_key_problems(keys: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    """The names of keys that can't be used, each with the reason."""
    for name, text in keys.items():
        try:
            PublicKeys({name: text})
        except TidingsError as problem:
            yield name, str(problem)
