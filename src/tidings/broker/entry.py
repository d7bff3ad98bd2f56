"""Who may come in, under which name, and what they may do there.

    token = "name"                                bound: nobody else may have the name
    token = "*"                                   any name that is bound to nobody: a guest
    token = {name = "...", may = ["publish"]}     either of them, with what it may do
    a certificate                                 bound to each of the names in it

Publishers are told apart by names, and the rendezvous point drops what a publisher has said before.
So nobody may publish under the name of another: whoever is not a router publishes under its own
name, and guests under "*/" and theirs, which is the name of nobody who is bound, at any router.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Literal

import msgspec

from tidings.routing import messages as m

Right = Literal["publish", "subscribe", "route"]
ANY = "*"
GUEST: frozenset[Right] = frozenset({"publish", "subscribe"})
ALL: frozenset[Right] = GUEST | {"route"}


class Grant(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a token is good for. Who has a name of its own may do everything unless `may` says
    otherwise; guests may not route, which is to publish under the names of others."""

    name: str
    may: frozenset[Right] | None = None

    @property
    def rights(self) -> frozenset[Right]:
        if self.may is not None:
            return self.may
        return GUEST if self.name == ANY else ALL


Tokens = Mapping[str, str | Grant]


class Pass(msgspec.Struct, frozen=True):
    """With what somebody came in: it is looked at again for every message."""

    name: str
    may: frozenset[Right] = ALL
    routes: bool = True  # it says that it is a router, and may be one
    bound: bool = True  # nobody else has this name
    key: bytes = b""  # tells guests with different tokens apart

    @property
    def publisher(self) -> str:
        """What the names of its publishers begin with."""
        return self.name if self.bound else f"{ANY}/{self.name}"

    @property
    def owner(self) -> str:
        """Whose filters those are that it asks for. Guests are told apart by their tokens: names
        they may have as many as they like."""
        return self.name if self.bound else f"{ANY}/{sha256(b'owner' + self.key).hexdigest()[:16]}"

    @property
    def neighbour(self) -> str:
        """Under which name the machine knows it. Whoever may not subscribe gets nothing that was
        for one of the same name who did."""
        return self.name if "subscribe" in self.may else f"{self.name}/publisher"

    def may_replace(self, other: Pass) -> bool:
        """Whether this is the same one, back again, or one with more right to the name."""
        return self.bound or (not other.bound and hmac.compare_digest(self.key, other.key))

    def refusal(self, message: m.Message) -> str:
        """Why a message is not taken; empty if it is."""
        if isinstance(message, m.Trace):  # whoever publishes must know whether it is still there
            return ""
        if not isinstance(message, m.Publish):
            return "" if "subscribe" in self.may else f"{self.name!r} may not subscribe here"
        if "publish" not in self.may:
            return f"{self.name!r} may not publish here"
        mine = self.publisher
        if self.routes or message.publisher == mine or message.publisher.startswith(f"{mine}/"):
            return ""
        return f"found a publication of {message.publisher[:80]!r}, expected one of {mine!r}"


def admit(
    hello: m.Hello, tokens: Tokens | None, certified: frozenset[str], reserved: Iterable[str] = ()
) -> Pass | str:
    """The pass of whoever says hello, or why there is none. `certified` are the names in its
    certificate, `reserved` those that had one before."""
    grants = {token: _grant(value) for token, value in (tokens or {}).items()}
    if "/" in hello.name or hello.name == ANY:
        return f"found the name {hello.name[:80]!r}, expected one without '/' that is not '*'"
    key = sha256(hello.token.encode("utf-8", "surrogatepass")).digest()
    found: Grant | None = None
    for token, grant in grants.items():  # all of them: how long it takes tells nothing
        same = hmac.compare_digest(sha256(token.encode("utf-8", "surrogatepass")).digest(), key)
        found = grant if same and token else found
    rights: frozenset[Right] = frozenset()
    if hello.name in certified:
        rights = ALL
    elif found is None:
        return "the token is not one that is known here, and no certificate has the name"
    elif found.name not in (ANY, hello.name):
        return f"the token is that of another name than {hello.name[:80]!r}"
    bound = hello.name in certified or (found is not None and found.name == hello.name)
    if found is not None and found.name in (ANY, hello.name):
        rights |= found.rights
    if not bound and (hello.name in reserved or _is_bound(hello.name, grants.values())):
        return f"the name {hello.name[:80]!r} is bound to another token or a certificate"
    if hello.routes and "route" not in rights:
        return f"{hello.name[:80]!r} is a router, and its token may not route"
    return Pass(hello.name, rights, hello.routes, bound, b"" if bound else key)


def _grant(value: str | Grant) -> Grant:
    return Grant(value) if isinstance(value, str) else value


def _is_bound(name: str, grants: Iterable[Grant]) -> bool:
    return any(grant.name == name for grant in grants)
