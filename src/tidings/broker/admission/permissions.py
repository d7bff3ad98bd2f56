"""Who may come in, under which name, and what they may do there.

    token = "name"                                bound: nobody else may have the name
    token = "*"                                   any name that is bound to nobody: a guest
    token = {name = "...", may = ["publish"]}     either of them, with what it may do
    token = {name = "...", may = ["route"]}       a router: nobody routes who was not asked to
    a certificate                                 bound to each of the names in it, and a router

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

from tidings.routing.protocol import messages as m

Right = Literal["publish", "subscribe", "route"]
ANY = "*"
AGENT: frozenset[Right] = frozenset({"publish", "subscribe"})
ROUTE: frozenset[Right] = frozenset({"route"})
ALL: frozenset[Right] = AGENT | ROUTE


class Grant(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a token is good for. Without `may` that is to publish and to subscribe. To route is to
    publish under the names of others, so it is for those alone of whom it is said. Beside `route`
    stands what may pass such a router; `route` alone lets everything pass."""

    name: str
    may: frozenset[Right] | None = None

    @property
    def rights(self) -> frozenset[Right]:
        if self.may is None:
            return AGENT
        return ALL if self.may == ROUTE else self.may


Tokens = Mapping[str, str | Grant]


class Permissions(msgspec.Struct, frozen=True):
    """With what somebody came in: it is looked at again for every message."""

    name: str
    may: frozenset[Right] = ALL
    routes: bool = True  # it says that it is a router, and may be one
    bound: bool = True  # nobody else has this name
    key: bytes = b""  # the digest of the token; tells guests with different ones apart

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

    def may_replace(self, other: Permissions) -> bool:
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


class Register:
    """What is known of tokens, by their digests, which are made once.

    A greeting costs one digest and one look-up, whatever the number of tokens. How long the look-up
    takes depends on digests alone: whoever would learn from it how much of a digest was right would
    have to find a token for each digest that it wants to try, which SHA-256 is there to prevent.
    """

    def __init__(self, tokens: Tokens | None) -> None:
        self._grants: dict[bytes, Grant] = {}
        for token, value in (tokens or {}).items():
            if token:  # or anybody came in with none
                self._grants[digest_of(token)] = Grant(value) if isinstance(value, str) else value
        self._bound = {grant.name for grant in self._grants.values()} - {ANY}

    def admit(
        self, hello: m.Hello, certified: frozenset[str], reserved: Iterable[str] = ()
    ) -> Permissions | str:
        """The pass of whoever says hello, or why there is none. `certified` are the names in its
        certificate, `reserved` those that had one before."""
        key = digest_of(hello.token)
        return self.judge(hello.name, key, certified, reserved, routes=hello.routes)

    def judge(
        self,
        name: str,
        key: bytes,
        certified: frozenset[str],
        reserved: Iterable[str] = (),
        *,
        routes: bool,
    ) -> Permissions | str:
        """The same, of a token whose digest is `key`."""
        if "/" in name or name == ANY:
            return f"found the name {name[:80]!r}, expected one without '/' that is not '*'"
        found = self._grants.get(key)
        rights: frozenset[Right] = frozenset()
        if name in certified:
            rights = ALL
        elif found is None:
            return "the token is not one that is known here, and no certificate has the name"
        elif found.name not in (ANY, name):
            return f"the token is that of another name than {name[:80]!r}"
        bound = name in certified or (found is not None and found.name == name)
        if found is not None and found.name in (ANY, name):
            rights |= found.rights
        if not bound and (name in reserved or name in self._bound):
            return f"the name {name[:80]!r} is bound to another token or a certificate"
        if routes and "route" not in rights:
            wanted = f'{{name = "{name[:80]}", may = ["route"]}}'
            return (
                f"{name[:80]!r} is a router, and its token may not route; "
                f"expected {wanted} among the tokens here"
            )
        return Permissions(name, rights, routes, bound, key)


def digest_of(token: str) -> bytes:
    return sha256(token.encode("utf-8", "surrogatepass")).digest()
