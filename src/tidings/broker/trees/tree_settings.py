"""The settings in a tree's file, and the nodes that the settings describe."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import msgspec

from tidings.broker.admission.listen import Address, Direct
from tidings.broker.admission.permissions import TokenRights
from tidings.broker.config import PreprocessorTable, RelationsTable, Tls
from tidings.model import Extra

HERE = "127.0.0.1"
ANYWHERE = {"0.0.0.0": HERE, "::": "::1"}  # host to listen on -> host to connect to


class TaggerTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A preprocessor that runs as a process."""

    listen: str | int = 0
    host: str | None = None  # the host by which agents reach the preprocessor
    channel: str | None = None
    key: str | None = None  # the file with the private key that signs grants


class Member(NamedTuple):
    """A node of the tree, as the file describes it."""

    name: str
    listen: Address  # port 0 means any free port
    upstream: str | None
    depth: int
    channel: str = ""  # for nodes of another channel: its name in `[channels]`
    public: str | None = None  # see `public` in a router's file
    places: Literal["upstream", "preprocessor"] = "upstream"
    tagger: TaggerTable | None = None  # for a preprocessor
    others: tuple[str, ...] = ()  # used in this order if `upstream` can't be reached

    @property
    def kind(self) -> Literal["rendezvous", "router", "preprocessor"]:
        if self.tagger is not None:
            return "preprocessor"
        return "rendezvous" if self.upstream is None else "router"

    @property
    def upstreams(self) -> tuple[str, ...]:
        """All nodes above, the preferred one first."""
        return () if self.upstream is None else (self.upstream, *self.others)

    @property
    def reached(self) -> str:
        """The host to connect to from this machine."""
        return ANYWHERE.get(self.listen.host, self.listen.host)


class OtherRoot(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The rendezvous point of another channel."""

    listen: str | int = 0
    columns: dict[str, Any] = {}
    extra: Extra | None = None
    preprocessor: PreprocessorTable = PreprocessorTable()
    relations: RelationsTable | None = None
    limits: dict[str, Any] = {}  # they override the limits of the tree


class Tree(msgspec.Struct, frozen=True):
    """The content of a tree's file."""

    path: Path
    folder: Path
    channel: str
    policy: str
    columns: dict[str, Any]
    extra: Extra | None
    preprocessor: PreprocessorTable
    tokens: dict[str, str | TokenRights] | None
    grants: dict[str, str] | None  # public keys whose grants are accepted, by name
    times: dict[str, float]
    patience: float
    members: tuple[Member, ...]  # each member follows the member above it; the root is the first
    channels: dict[str, OtherRoot] = {}  # other channels
    direct: Direct | None = None
    ticket_key: Path | None = None
    limits: dict[str, Any] = {}
    root_limits: dict[str, Any] = {}  # limits of the root; they override the limits of the tree
    tickets: dict[str, str] = {}  # public keys of other nodes whose tickets are accepted, by name
    tls: Tls | None = None  # its paths are absolute, and may contain `{name}`
    relations: RelationsTable | None = None
    warnings: tuple[str, ...] = ()  # files that other users may read, and odd tokens

    @property
    def is_guarded(self) -> bool:
        """Must every client have a token or a certificate?"""
        return _is_guarded(self.tokens, self.tls)

    @property
    def open_to_others(self) -> list[Member]:
        """The nodes to which anybody on another machine can connect."""
        if self.is_guarded:
            return []
        return [one for one in self.members if not is_local(one.listen.host)]


class RootTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str = "root"
    listen: str | int = 0
    limits: dict[str, Any] = {}  # they override the limits of the tree


class RouterTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    listen: str | int = 0
    upstream: str | list[str] | None = None
    public: str | None = None
    places: Literal["upstream", "preprocessor"] = "upstream"


class TreeTables(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    channel: str = ""
    folder: str | None = None
    policy: Literal["drop", "disconnect"] = "drop"
    columns: dict[str, Any] = {}
    extra: Extra | None = None
    preprocessor: PreprocessorTable = PreprocessorTable()
    relations: RelationsTable | None = None
    tokens: dict[str, str | TokenRights] | None = None
    grants: dict[str, str] | None = None
    times: dict[str, float] = {}
    patience: Annotated[float, msgspec.Meta(ge=3)] = 30.0
    root: RootTable = RootTable()
    router: dict[str, RouterTable] = {}
    channels: dict[str, OtherRoot] = {}
    preprocessors: dict[str, TaggerTable] = {}
    direct: Direct | None = None
    ticket_key: str | None = None
    limits: dict[str, Any] = {}
    tickets: dict[str, str] = {}
    tls: Tls | None = None

    @property
    def is_guarded(self) -> bool:
        return _is_guarded(self.tokens, self.tls)


def _is_guarded(tokens: object, tls: Tls | None) -> bool:
    return tokens is not None or (tls is not None and tls.authorities is not None)


def is_local(host: str) -> bool:
    return host in ("localhost", "::1") or host.startswith("127.")
