"""The node, or the listening address of a preprocessor, that a file describes."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from tidings.broker.admission.listen import Door
from tidings.broker.config.node_settings import (
    Config,
    ConfigError,
    address_of,
    declared_attributes,
    list_addresses,
)
from tidings.broker.router_node import RouterNode
from tidings.broker.server import Server
from tidings.network import (
    Policy,
    client_context,
    load_authorities,
    load_certificate,
    measure_costs,
    server_context,
)
from tidings.routing.channels import Route
from tidings.routing.forwarding import Forwarding, Mode
from tidings.routing.protocol import Times

if TYPE_CHECKING:
    from tidings.routing.learning import EarlySettings


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
        from tidings.broker.root_node import RootNode  # loads the kernels, which routers don't need

        journal = config.at(config.journal)
        attributes = declared_attributes(config.columns, config.extra, config.kind)
        table = config.relations
        relations = None if table is None else table.load(config.folder)
        return RootNode(
            config.name, journal, door, attributes=attributes, kind=config.kind, times=times,
            forwarding=forwarding, direct=config.direct, relations=relations,
        )  # fmt: skip
    hops = {
        name: [address_of(text, "upstreams") for text in list_addresses(given)]
        for name, given in config.upstreams.items()
    }
    return RouterNode(
        config.name,
        [address_of(text, "upstream") for text in list_addresses(config.upstream)],
        door,
        times=times,
        token=config.token,
        tls=_client_tls(config),
        forwarding=forwarding,
        hops=hops,
        routes=_routes(config),
        places=config.places,
        show_token=config.show_token,
        relations=_load_relations(config),
    )


def _load_relations(config: Config) -> Callable[[], EarlySettings] | None:
    """A function that loads the relations that a router's file describes; None if there are
    none."""
    return (
        None if config.relations is None else partial(config.relations.load_serving, config.folder)
    )


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


def _forwarding(config: Config) -> Forwarding:
    costs = measure_costs()
    byte = costs.byte if config.bandwidth is None else max(costs.byte, 8000 / config.bandwidth)
    return Forwarding(Mode(config.forwarding), costs.rewrite, byte)


def make_door(listen: str, channel: str, config: Config | None) -> Door:
    """Where a preprocessor listens. If `config`, the content of a router's file, is given, its
    tokens, certificates and limits apply."""
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


def _server_tls(config: Config) -> ssl.SSLContext | None:
    tls = config.tls
    if tls is None:
        return None
    context = server_context(config.at(tls.certificate), config.at(tls.key))
    if tls.authorities is not None:
        load_authorities(context, config.at(tls.authorities))
        # a client with a token or a ticket needs no certificate
        others = bool(config.tokens or config.tickets or config.direct)
        context.verify_mode = ssl.CERT_OPTIONAL if others else ssl.CERT_REQUIRED
    return context


def _client_tls(config: Config) -> ssl.SSLContext | None:
    tls = config.tls
    if tls is None:
        return None
    context = client_context(None if tls.authorities is None else config.at(tls.authorities))
    load_certificate(context, config.at(tls.certificate), config.at(tls.key))
    return context
