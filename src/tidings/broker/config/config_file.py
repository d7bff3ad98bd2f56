"""A router's file, read and checked.

    name = "edge-1"
    listen = "127.0.0.1:7401"
    upstream = "127.0.0.1:7400"      the node above, or several addresses; only for routers
    journal = "journal.db"           its durable state; only for a rendezvous point
    channel = "quotes"
    token = "..."                    presented to the node above;
    token_file = "above.token"       or the file that contains it
    policy = "drop"                  for neighbours that are too slow; or "disconnect"
    forwarding = "adaptive"          or "labels", "lists": see docs/network.md
    bandwidth = 1000                 Mbit/s of its links, if they are slower than the machine
    public = "edge-1.example:7401"   the address by which agents reach it, if not that of `listen`;
                                     "" if agents should not be told to use it
    ticket_key = "edge-1.key"        the private key with which it signs tickets for its clients
    places = "preprocessor"          who says where new nodes belong in the router's graph; or
                                     "upstream": see docs/tagging.md

    extra = "keep"                   what happens to fields that [columns] does not declare

    [upstreams]                      other nodes above, of other channels
    west = "10.0.0.7:7400"           an address, or several

    [channels]                       the node above for each other channel; "" is `upstream`
    tea = "west"
    "orders-*" = {upstream = "", limits = {nodes = 1000}}

    [columns]                        declared attributes; only for a rendezvous point
    price = "double"

    [preprocessor]                   the kind of interest, see preprocessor_table.py
    kind = "topics"
    ontology = "topics.yaml"

    [tokens]                         who may connect, see admission/permissions.py
    "..." = {name = "edge-1", may = ["route"]}
    "..." = "desk"
    "..." = {name = "eu", within = "region = 'EU'"}
    "..." = {name = "it", signed = true}

    [grants]                         preprocessors whose grants are accepted: see `tidings key`
    tagger = "ed25519:..."

    [tickets]                        routers whose tickets a preprocessor with this file accepts
    edge-1 = "ed25519:..."

    [tls]
    certificate = "edge-1.pem"
    key = "edge-1.key"
    authorities = "ca.pem"           the authorities trusted to certify routers below and the node
                                     above; if left out, those that the machine trusts

    [direct]                         links of agents that bypass the tree; only for a rendezvous
    most = 4                         point: see docs/network.md
    address = "root.example.org:7400"

    [limits]                         see routing/protocol/limits.py
    neighbours = 500

Paths are relative to the file. `renew` reads the tokens and keys again while a node runs.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from tidings.broker.admission.listen import Address, Direct, Door
from tidings.broker.admission.permissions import ANY, Grant
from tidings.broker.admission.signing import KeyProblem, Signer, find_key_problems
from tidings.broker.config.preprocessor_table import (
    PreprocessorTable,
    find_preprocessor_problems,
    read_preprocessor,
)
from tidings.broker.router import RouterNode
from tidings.broker.server import Server
from tidings.files import SecretError, check_secret, find_problems, read_secret, read_toml
from tidings.filters import Attributes, parse
from tidings.filters.values import Revision
from tidings.model import AttributesError, Extra, FilterError, Problem, TidingsError
from tidings.network import (
    Policy,
    client_context,
    load_authorities,
    load_certificate,
    measure_costs,
    server_context,
)
from tidings.preprocessing import KindDefinition
from tidings.routing.channels import Route
from tidings.routing.forwarding import Forwarding, Mode
from tidings.routing.protocol import Limits, Times

_HIDDEN = ("folder", "kind", "ticket_secret", "warnings")  # fields that no file sets
_UNUSED = "127.0.0.1:0"  # an address to which nobody connects
MOST_TOLD = 10  # removed topics in one sentence


class ConfigError(TidingsError):
    """A configuration file can't be used; the message says where, and what was expected."""


class Tls(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    certificate: str
    key: str
    authorities: str | None = None


class OtherChannel(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A channel that a router carries besides its own."""

    upstream: str = ""
    limits: dict[str, int] = {}


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    listen: str
    upstream: str | list[str] | None = None
    journal: str | None = None
    channel: str = ""
    token: str = ""
    token_file: str | None = None
    policy: Literal["drop", "disconnect"] = "drop"
    forwarding: Literal["adaptive", "labels", "lists"] = "adaptive"
    bandwidth: Annotated[float, msgspec.Meta(gt=0)] | None = None
    places: Literal["upstream", "preprocessor"] = "upstream"
    extra: Extra | None = None
    columns: dict[str, Any] = {}  # names with types, perhaps in nested tables
    preprocessor: PreprocessorTable = PreprocessorTable()
    tokens: dict[str, str | Grant] | None = None
    tls: Tls | None = None
    times: dict[str, float] = {}
    limits: Limits = Limits()
    upstreams: dict[str, str | list[str]] = {}
    channels: dict[str, str | OtherChannel] = {}
    direct: Direct | None = None
    grants: dict[str, str] | None = None  # public keys whose grants are accepted, by name
    tickets: dict[str, str] | None = None  # the same for tickets
    ticket_key: str | None = None
    public: str | None = None
    ticket_secret: str = ""  # what the file `ticket_key` contains
    kind: KindDefinition = KindDefinition()  # what `preprocessor` defines
    folder: Path = Path()
    warnings: tuple[str, ...] = ()  # warnings about secret files that others may read

    def at(self, path: str) -> Path:
        return (self.folder / path).absolute()


def load_config(path: str | Path, *, of_preprocessor: bool = False) -> Config:
    """Read a router's file; raise ConfigError, with all problems, if it can't be used. A
    preprocessor uses only who may connect, so its file need not say where to listen."""
    path = Path(path)
    file = read_toml(path, ConfigError)
    data = file.data
    if of_preprocessor:
        data = {"name": "preprocessor", "listen": _UNUSED, **data}
        if "journal" not in data:
            data = {"upstream": _UNUSED, **data}
    problems = list(find_problems(data, Config, hidden=_HIDDEN))
    problems += find_column_problems(data)
    problems += find_time_problems(data)
    if not problems:
        found = msgspec.convert(data, Config)
        problems = [*_problems(found), *find_token_problems(found.tokens or {})]
        problems += find_grant_problems(found.grants)
        problems += [
            Problem(("tickets", name), f"tickets: {name}: {reason}")
            for name, reason in find_key_problems(found.tickets or {})
        ]
    if problems:
        raise ConfigError(file.describe(problems))
    kind = read_kind(path, found.preprocessor, found.columns, found.extra)
    found = msgspec.structs.replace(found, kind=kind, folder=path.parent.absolute())
    return _with_secrets(path, found)


def find_grant_problems(grants: Mapping[str, str] | None) -> list[Problem]:
    """The problems of [grants]."""
    return [
        Problem(("grants", name), f"grants: {name}: {reason}")
        for name, reason in find_key_problems(grants or {})
    ]


def _problems(found: Config) -> Iterator[Problem]:
    """The problems that a check of types can't find."""
    if (found.upstream is None) == (found.journal is None):
        yield Problem(
            ("upstream",), "expected either upstream, for a router, or journal, for a rendezvous "
            "point"
        )  # fmt: skip
    if found.journal is None:
        for name in ("columns", "extra", "preprocessor", "direct"):
            if getattr(found, name) not in ({}, None, PreprocessorTable()):
                shown = name if name == "extra" else f"[{name}]"
                yield Problem((name,), f"found {shown}, which only a rendezvous point may have")
    else:
        for name in ("upstreams", "channels"):
            if getattr(found, name):
                yield Problem((name,), f"found [{name}], which only a router may have")
        if found.places != "upstream":
            yield Problem(("places",), "found places, which only a router may have")
    if found.ticket_key is not None and found.tokens is None and (
        found.tls is None or found.tls.authorities is None
    ):  # fmt: skip
        yield Problem(
            ("ticket_key",), "found ticket_key and no [tokens], expected [tokens] that say who may "
            "connect"
        )  # fmt: skip
    yield from _find_channel_problems(found)
    yield from find_preprocessor_problems(found.preprocessor)
    if found.extra == "drop":
        yield Problem(
            ("extra",),
            'extra: found "drop", expected "open", "keep" or "refuse"; a rendezvous point passes '
            "on only the payload, so there are no attributes to leave out",
        )
    places = [("listen", found.listen), *(("upstream", one) for one in _list(found.upstream))]
    if found.direct is not None and found.direct.address:
        places.append(("direct", found.direct.address))
    places += [("public", found.public)] if found.public else []
    for name, text in places:
        try:
            address_of(text, name)
        except ConfigError as problem:
            yield Problem((name,), str(problem))


def _list(given: str | list[str] | None) -> list[str]:
    """One address or several, as a list."""
    return [given] if isinstance(given, str) else given or []


def _find_channel_problems(found: Config) -> Iterator[Problem]:
    """The problems with other channels, and with the nodes above for them."""
    if found.upstream == []:
        yield Problem(("upstream",), "upstream: found no address, expected at least one")
    for name, given in found.upstreams.items():
        where = f"upstreams.{name}"
        if not name or not given:
            sentence = f"{where}: found no name or no address, expected both"
            yield Problem(("upstreams", name), sentence)
        for text in _list(given):
            try:
                address_of(text, where)
            except ConfigError as problem:
                yield Problem(("upstreams", name), str(problem))
    for name, one in found.channels.items():
        place, above = ("channels", name), one if isinstance(one, str) else one.upstream
        if not name or name == found.channel:
            yield Problem(place, f"channels: found {name!r}, expected the name of another channel")
        if above and above not in found.upstreams:
            known = ", ".join(f'"{other}"' for other in ("", *found.upstreams))
            sentence = f"channels.{name}: found the upstream {above!r}, expected one of {known}"
            yield Problem(place, sentence)
        if isinstance(one, OtherChannel):
            yield from find_problems(one.limits, Limits, (*place, "limits"))


def _routes(config: Config) -> dict[str, Route]:
    """The routes of other channels."""
    found: dict[str, Route] = {}
    for name, one in config.channels.items():
        if isinstance(one, str):
            found[name] = Route(one)
        else:
            limits = msgspec.structs.replace(config.limits, **one.limits) if one.limits else None
            found[name] = Route(one.upstream, limits)
    return found


def find_column_problems(data: dict[str, Any]) -> Iterator[Problem]:
    """The problems with the declared attributes of a file."""
    columns = data.get("columns", {})
    if isinstance(columns, dict):
        try:
            Attributes(columns)
        except AttributesError as problem:
            for place, sentence in problem.problems:
                yield Problem(("columns", *place), f"columns: {sentence}")


def find_time_problems(data: dict[str, Any]) -> Iterator[Problem]:
    times = data.get("times", {})
    if isinstance(times, dict):
        yield from find_problems(times, Times, ("times",))


def read_kind(
    path: Path, table: PreprocessorTable, columns: dict[str, Any], extra: Extra | None
) -> KindDefinition:
    """The kind of interest that a file defines; raises ConfigError if it does not fit the
    columns."""
    try:
        kind = read_preprocessor(table, path.parent.absolute())
        attributes = _declared_attributes(columns, extra, kind)
        if kind.kind != "content":
            from tidings.channel import Declaration  # loads the kernels, which routers do without

            Declaration("", attributes, kind, "")
    except TidingsError as problem:
        raise ConfigError(f"{path}: preprocessor: {problem}") from None
    return kind


def _with_secrets(path: Path, config: Config) -> Config:
    """The configuration with its token; raises ConfigError if others may read a file with
    tokens."""
    token, secret, warnings = config.token, "", []
    try:
        if config.tokens or config.token:
            warnings.append(check_secret(path))
        if config.token_file is not None:
            if config.token:
                raise ConfigError(f"{path}: found token and token_file, expected only one of them")
            token, warning = read_secret(config.at(config.token_file))
            warnings.append(warning)
        if config.ticket_key is not None:
            secret, warning = read_secret(config.at(config.ticket_key))
            warnings.append(warning)
            Signer(secret)
    except SecretError as problem:
        raise ConfigError(str(problem)) from None
    except KeyProblem as problem:
        raise ConfigError(f"{path}: ticket_key: {problem}") from None
    said = tuple(filter(None, warnings))
    return msgspec.structs.replace(config, token=token, ticket_secret=secret, warnings=said)


def make_node(config: Config) -> Server:
    """The node that a file describes, not started yet."""
    try:
        times = msgspec.convert(config.times, Times)
    except msgspec.ValidationError as problem:
        raise ConfigError(f"times: {problem}") from None
    door = Door(
        address_of(config.listen, "listen"),
        _server_tls(config),
        config.tokens,
        config.tls is not None and config.tls.authorities is not None,
        config.channel,
        Policy(config.policy),
        config.limits,
        config.grants,
        public=config.public,
        ticket_key=config.ticket_secret,
    )
    forwarding = _forwarding(config)
    if config.journal is not None:
        from tidings.broker.root import RootNode  # loads the kernels, which routers do without

        journal = config.at(config.journal)
        attributes = _declared_attributes(config.columns, config.extra, config.kind)
        return RootNode(
            config.name, journal, door, attributes=attributes, kind=config.kind, times=times,
            forwarding=forwarding, direct=config.direct,
        )  # fmt: skip
    hops = {
        name: [address_of(text, "upstreams") for text in _list(given)]
        for name, given in config.upstreams.items()
    }
    return RouterNode(
        config.name,
        [address_of(text, "upstream") for text in _list(config.upstream)],
        door,
        times=times,
        token=config.token,
        tls=_client_tls(config),
        forwarding=forwarding,
        hops=hops,
        routes=_routes(config),
        places=config.places,
    )


def _declared_attributes(
    columns: dict[str, Any], extra: Extra | None, kind: KindDefinition
) -> Attributes | None:
    """The attributes that a file declares; None if there are none."""
    if not columns and not (kind.kind != "content" and extra):
        return None
    return Attributes(columns, extra=extra)


def make_door(listen: str, channel: str, config: Config | None) -> Door:
    """Where a preprocessor listens. The tokens, certificates and limits of a router's file apply,
    if given."""
    place = address_of(listen, "listen")
    if config is None:
        return Door(place, channel=channel)
    return Door(
        place,
        _server_tls(config),
        config.tokens,
        config.tls is not None and config.tls.authorities is not None,
        channel,
        limits=config.limits,
        tickets=config.tickets,
    )


def renew(node: Server, config: Config) -> int:
    """Make a running node use the tokens and the keys of grants that are now in its file; return
    the number of closed links. Everything else in the file takes effect at the next start."""
    if (config.tokens is None) != (node.door.tokens is None):
        raise ConfigError(
            "found "
            + ("no [tokens], expected some" if config.tokens is None else "[tokens], expected none")
            + ", as when the node was started; to add or remove [tokens], restart the node"
        )
    node.renew_keys(config.grants)
    return node.renew(config.tokens, config.token)


async def revise(node: Server, config: Config) -> str:
    """Make a running rendezvous point use the kind of interest that is now in its file; return a
    sentence about what changed. Raises TidingsError if it can't be used; then nothing changes."""
    from tidings.broker.root import RootNode

    if not isinstance(node, RootNode) or node.kind == config.kind:
        return ""
    found = await node.revise(config.kind)
    return "" if found is None else f"the preprocessor was revised{_tell(found)}"


def _tell(found: Revision) -> str:
    parts = [f"{len(found.added):,} names were added"] if found.added else []
    few = islice(found.moved.items(), MOST_TOLD)
    parts += [f"'{name}' was removed, and stands for {_join_some(stand)}" for name, stand in few]
    if len(found.moved) > MOST_TOLD:
        parts.append(f"{len(found.moved) - MOST_TOLD:,} more were removed")
    if found.dropped:
        parts.append(f"nothing stands for {_join_some(found.dropped)}")
    return ": " + "; ".join(parts) if parts else ""


def _join_some(names: Iterable[str]) -> str:
    shown = [f"'{name}'" for name in islice(names, MOST_TOLD + 1)]
    return ", ".join(shown[:MOST_TOLD]) + (" and others" if len(shown) > MOST_TOLD else "")


def _forwarding(config: Config) -> Forwarding:
    costs = measure_costs()
    byte = costs.byte if config.bandwidth is None else max(costs.byte, 8000 / config.bandwidth)
    return Forwarding(Mode(config.forwarding), costs.rewrite, byte)


def address_of(text: str, what: str) -> Address:
    """The address HOST:PORT."""
    host, _, port = text.rpartition(":")
    if not host or not port.isascii() or not port.isdigit() or not 0 <= int(port) < 65536:
        raise ConfigError(
            f"{what}: found {text!r}, expected a host and a port, such as 127.0.0.1:7400"
        )
    return Address(host.strip("[]"), int(port))


def find_token_problems(tokens: dict[str, str | Grant]) -> Iterator[Problem]:
    """The problems with tokens. A message never shows the token itself."""
    for token, value in tokens.items():
        grant = Grant(value) if isinstance(value, str) else value
        place = ("tokens", token)
        if not token:
            yield Problem(place, "tokens: found an empty token, which would admit anybody")
        if not grant.name or (grant.name != ANY and ("/" in grant.name or "*" in grant.name)):
            yield Problem(
                place,
                f"tokens: found the name {grant.name!r}, expected '*', or a name without '/' and "
                "'*'",
            )
        if grant.signed and "route" in grant.rights:
            yield Problem(place, "tokens: found signed = true for a router, expected an agent")
        if grant.within:
            try:
                parse(grant.within)
            except FilterError as problem:
                yield Problem(place, f"tokens: within: {problem}")


def _server_tls(config: Config) -> ssl.SSLContext | None:
    tls = config.tls
    if tls is None:
        return None
    context = server_context(config.at(tls.certificate), config.at(tls.key))
    if tls.authorities is not None:
        load_authorities(context, config.at(tls.authorities))
        has_tokens = bool(config.tokens)  # then clients need no certificate
        context.verify_mode = ssl.CERT_OPTIONAL if has_tokens else ssl.CERT_REQUIRED
    return context


def _client_tls(config: Config) -> ssl.SSLContext | None:
    tls = config.tls
    if tls is None:
        return None
    context = client_context(None if tls.authorities is None else config.at(tls.authorities))
    load_certificate(context, config.at(tls.certificate), config.at(tls.key))
    return context
