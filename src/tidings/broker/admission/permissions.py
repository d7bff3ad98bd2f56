"""Who may connect, under which name, and with which rights.

    token = "name"                                bound: nobody else may use the name
    token = "*"                                   a guest: any name that is not bound
    token = {name = "...", may = ["publish"]}     bound or a guest, with only these rights
    token = {name = "...", within = "x = 1"}      may subscribe only to what this filter covers
    token = {name = "...", channels = ["fx-*"]}   may use only these channels
    token = {name = "...", channels = {fx = ["publish", "subscribe"], tea = ["subscribe"]}}
                                                  with other rights in each channel
    token = {name = "...", signed = true}         may subscribe only with grants (signing.py)
    token = {name = "...", may = ["route"]}       a router; this right must be granted explicitly
    token = {name = "...", may = ["preprocess"]}  a pipeline: it gets all filters, and hands tagged
                                                  notifications over; only if granted explicitly
    a certificate                                 bound to each of the names in it; may route
    a ticket                                      at a preprocessor: what the node that signed it
                                                  says about the client (signing.py)

The rendezvous point recognises publishers by name, and drops repeated notifications of a publisher.
So no client may publish under a name that belongs to another client. A bound client that is not a
router publishes under its own name. A guest publishes under "*/" and its name; no bound client can
have such a name.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Annotated, Literal

import msgspec

from tidings.routing.protocol import Ticket, messages as m

Right = Literal["publish", "subscribe", "route", "preprocess"]
ANY = "*"
AGENT: frozenset[Right] = frozenset({"publish", "subscribe"})
ROUTE: frozenset[Right] = frozenset({"route"})
ALL: frozenset[Right] = AGENT | ROUTE
EVERYTHING: frozenset[Right] = ALL | {"preprocess"}


class ChannelRights(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The rights of a token in one channel. For a field that is left out, the token's own value
    applies."""

    may: frozenset[Right] | None = None
    within: Annotated[str, msgspec.Meta(max_length=m.LONGEST_WITHIN)] | None = None


RightsByChannel = Mapping[str, ChannelRights]


class TokenRights(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The name and the rights of a token. Without `may`, a token has the rights to publish and to
    subscribe. A router publishes under the names of others, so `route` must be granted explicitly.
    Rights listed besides `route` restrict what the router may forward; with `route` alone, it may
    forward everything. `within` is a filter in SQL: the client, or everybody behind the router, may
    subscribe only to what the filter covers. `channels` lists names of channels, and prefixes of
    names that end in "*"; without `channels`, a token is valid for the node's own channel alone.
    Each entry may have its own rights; of several prefixes that fit a channel, the longest applies.
    With `signed`, a client may subscribe only to nodes for which a preprocessor signed a grant;
    only preprocessors then read `within`."""

    name: str
    may: frozenset[Right] | None = None
    within: Annotated[str, msgspec.Meta(max_length=m.LONGEST_WITHIN)] = ""
    channels: tuple[str, ...] | dict[str, frozenset[Right] | ChannelRights] | None = None
    signed: bool = False

    @property
    def rights(self) -> frozenset[Right]:
        """The rights that the token has in at least one channel."""
        found = self.by_channel
        if not found:
            return self._rights_of(self.may)
        return frozenset[Right]().union(*(one.may or frozenset() for one in found.values()))

    @property
    def by_channel(self) -> dict[str, ChannelRights]:
        """The rights in each channel, with defaults filled in; empty if they are the same in all
        channels."""
        if not isinstance(self.channels, dict):
            return {}
        found = {}
        for name, one in self.channels.items():
            given = one if isinstance(one, ChannelRights) else ChannelRights(one)
            may = self.may if given.may is None else given.may
            within = self.within if given.within is None else given.within
            found[name] = ChannelRights(self._rights_of(may), within)
        return found

    @property
    def names(self) -> tuple[str, ...] | None:
        """The channels, without their rights."""
        return tuple(self.channels) if isinstance(self.channels, dict) else self.channels

    def in_channel(self, channel: str) -> ChannelRights:
        """The rights in a channel; no rights if `channels` does not list the channel."""
        found = self.by_channel
        if not found:
            return ChannelRights(self.rights, self.within)
        return find_rights(found, channel) or ChannelRights(frozenset(), self.within)

    def _rights_of(self, may: frozenset[Right] | None) -> frozenset[Right]:
        if may is None:
            return AGENT
        return ALL if may == ROUTE else may


def find_rights(rights: RightsByChannel, channel: str) -> ChannelRights | None:
    """The rights that are listed for a channel's name or, if the name is not listed, for its
    longest listed prefix."""
    found = rights.get(channel)
    if found is not None:
        return found
    fitting = [one for one in rights if one.endswith(ANY) and channel.startswith(one[:-1])]
    return rights[max(fitting, key=len)] if fitting else None


Tokens = Mapping[str, str | TokenRights]


class Permissions(msgspec.Struct, frozen=True):
    """The name and rights of a client. Every message from a client is checked against the client's
    permissions."""

    name: str
    may: frozenset[Right] = EVERYTHING
    routes: bool = True  # the client is a router
    bound: bool = True  # nobody else may use its name
    key: bytes = b""  # the digest of its token, which distinguishes guests
    within: str = ""  # a filter that must cover all filters of the client
    channels: tuple[str, ...] | None = (ANY,)  # None means the node's own channel
    signed: bool = False  # the client may subscribe only with signed grants
    direct: str = ""  # for an agent that bypasses the tree: the owner that its ticket names
    party: str = ""  # the owner of its named subscriptions
    guest: str = ""  # for a guest that showed a ticket: the owner of its filters
    expires: float = 0.0  # when the ticket of the client expires; 0 if it has none
    by_channel: RightsByChannel = {}  # the rights in each channel, if they differ

    def in_channel(self, channel: str) -> Permissions:
        """The permissions in a channel that the client may use."""
        found = find_rights(self.by_channel, channel) if self.by_channel else None
        if found is None or found.may is None or found.within is None:
            return self
        return msgspec.structs.replace(self, may=found.may, within=found.within, by_channel={})

    @property
    def publisher(self) -> str:
        """The prefix of the names under which the client publishes."""
        return self.name if self.bound else f"{ANY}/{self.name}"

    @property
    def owner(self) -> str:
        """The owner of the client's filters. Guests are distinguished by their tokens, because a
        guest can use any number of names."""
        if self.bound or self.direct or self.guest:
            return self.direct or self.guest or self.name
        return f"{ANY}/{sha256(b'owner' + self.key).hexdigest()[:16]}"

    @property
    def neighbour(self) -> str:
        """The client's name in the state machine. A client without the right to subscribe gets a
        different name, so that it receives nothing that is meant for a subscriber of the same
        name."""
        return self.name if "subscribe" in self.may else f"{self.name}/publisher"

    def may_replace(self, other: Permissions) -> bool:
        """Is this client the same one as before, or does it have a stronger claim to the name?"""
        return self.bound or (not other.bound and hmac.compare_digest(self.key, other.key))

    @property
    def may_tag(self) -> bool:
        """May the client tag its publications itself?"""
        return "preprocess" in self.may

    def refusal(self, message: m.Message) -> str:
        """Why a message is refused; empty if it is accepted."""
        if isinstance(message, m.TAGGING):
            return "" if self.may_tag else self._refuse_tagging()
        if self.signed and isinstance(message, m.Ask):
            return (
                f"{self.name!r} may subscribe only with a signed grant here; expected "
                "subscribe(grant=...) with a grant of a preprocessor"
            )
        if not isinstance(message, m.Publish):
            if "subscribe" in self.may or isinstance(
                message, m.Trace | m.Goodbye | m.Seek | m.Advise | m.Identify
            ):
                return ""  # clients that only publish also send these messages
            return f"{self.name!r} may not subscribe here"
        if "publish" not in self.may:
            return f"{self.name!r} may not publish here"
        if message.tag and not message.content and not self.may_tag:
            return f"found a notification without attributes: {self._refuse_tagging()}"
        mine = self.publisher
        if self.routes or message.publisher == mine or message.publisher.startswith(f"{mine}/"):
            return ""
        return f"found a publication by {message.publisher[:80]!r}, expected one by {mine!r}"

    def refuse_channel(self, channel: str, own: str) -> str:
        """The reason why the client may not use a channel; empty if there is none. `own` is the
        node's channel."""
        if self.channels is None:
            may = channel == own
        else:
            may = any(
                channel.startswith(one[:-1]) if one.endswith(ANY) else channel == one
                for one in self.channels
            )
        here = self.in_channel(channel).may
        if may and self.routes and "route" not in here:
            return f"{self.name!r} is a router, but may not route the channel {channel[:80]!r} here"
        return (
            "" if may and here else f"{self.name!r} may not use the channel {channel[:80]!r} here"
        )

    def _refuse_tagging(self) -> str:
        rights = ", ".join(f'"{one}"' for one in (*sorted(self.may), "preprocess"))
        wanted = f'{{name = "{self.name[:80]}", may = [{rights}]}}'
        return (
            f"{self.name!r} may not preprocess here; expected a token with "
            f"{wanted} at the rendezvous point"
        )


class PermissionRegister:
    """The known tokens, by their digests, which are computed once.

    A greeting costs one digest and one lookup, however many tokens there are. How long the lookup
    takes depends only on digests. To learn a digest from these times, an attacker would need tokens
    whose digests it can choose. With SHA-256, nobody can find such tokens.
    """

    def __init__(self, tokens: Tokens | None) -> None:
        self._grants: dict[bytes, TokenRights] = {}
        for token, value in (tokens or {}).items():
            if token:  # an empty token would admit everybody
                self._grants[digest_of(token)] = (
                    TokenRights(value) if isinstance(value, str) else value
                )
        self._bound = {grant.name for grant in self._grants.values()} - {ANY}

    def admit(
        self, hello: m.Hello, certified: frozenset[str], reserved: Iterable[str] = ()
    ) -> Permissions | str:
        """The permissions of a client that sent a greeting, or the reason to refuse the client.
        `certified` holds the names in the client's certificate, and `reserved` the names in earlier
        certificates."""
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
        """Like `admit`, for a token with the digest `key`."""
        if "/" in name or name == ANY:
            return f"found the name {name[:80]!r}, expected one without '/' that is not '*'"
        found = self._grants.get(key)
        rights: frozenset[Right] = frozenset()
        if name in certified:
            rights = ALL
        elif found is None:
            return "the token is not known here, and no certificate has the name"
        elif found.name not in (ANY, name):
            return f"the token is bound to a name other than {name[:80]!r}"
        bound = name in certified or (found is not None and found.name == name)
        if found is not None and found.name in (ANY, name):
            rights |= found.rights
        if not bound and (name in reserved or name in self._bound):
            return f"the name {name[:80]!r} is bound to another token or a certificate"
        if routes and "route" not in rights:
            wanted = f'{{name = "{name[:80]}", may = ["route"]}}'
            return (
                f"{name[:80]!r} is a router, but its token may not route; "
                f"expected {wanted} among the tokens here"
            )
        within, channels = "", None
        by_channel: RightsByChannel = {}
        if found is not None and name not in certified:
            within, channels, by_channel = found.within, found.names, found.by_channel
        elif name in certified:
            channels = (ANY,)
        signed = found is not None and name not in certified and found.signed
        return Permissions(
            name, rights, routes, bound, key, within, channels, signed, by_channel=by_channel
        )

    def admit_ticket(self, ticket: Ticket) -> Permissions | str:
        """The permissions of a client that showed a ticket, or the reason to refuse the client. The
        ticket's signature must have been checked. If this node has a token that is bound to the
        ticket's name, the token's limits apply instead of those in the ticket, and the client has
        only the rights that both the token and the ticket give."""
        if not ticket.bound and ticket.name in self._bound:
            return f"the name {ticket.name[:80]!r} is bound to another token or a certificate"
        may: frozenset[Right] = frozenset(one for one in EVERYTHING if one in ticket.may)
        within = ticket.within
        for grant in self._grants.values():
            if grant.name == ticket.name:
                here = grant.in_channel(ticket.channel)
                may, within = may & (here.may or frozenset()), here.within or ""
        guest = "" if ticket.bound else ticket.owner
        return Permissions(
            ticket.name, may, False, ticket.bound, ticket.owner.encode(), within,
            (ticket.channel,), guest=guest, expires=ticket.expires,
        )  # fmt: skip


def digest_of(token: str) -> bytes:
    return sha256(token.encode("utf-8", "surrogatepass")).digest()
