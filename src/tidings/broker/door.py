"""Where others come in, and who may."""

from __future__ import annotations

import ssl
from collections.abc import Iterable

import msgspec

from tidings.broker.entry import Pass, Tokens, admit
from tidings.network import Policy
from tidings.routing import messages as m
from tidings.routing.limits import Limits

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

    def admit(
        self, hello: m.Hello, certified: frozenset[str] = frozenset(), reserved: Iterable[str] = ()
    ) -> Pass | str:
        """The pass of whoever says hello, or why it may not come in. `certified` are the names in
        its certificate, `reserved` those that came with one before."""
        if hello.channel != self.channel:
            return f"found the channel {hello.channel[:80]!r}, expected {self.channel!r}"
        if not hello.name or hello.name == UPSTREAM:
            return "found no name"
        if not hello.name.isprintable():
            return f"found the name {hello.name[:80]!r}, expected letters that can be printed"
        if not self.is_guarded:
            return Pass(hello.name)
        return admit(hello, self.tokens, certified if self.certificates else frozenset(), reserved)

    @property
    def is_guarded(self) -> bool:
        return self.tokens is not None or self.certificates
