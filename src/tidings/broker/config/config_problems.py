"""The problems in a node's file that a check of types can't find, each with its place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tidings.broker.admission.permissions import ANY, TokenRights
from tidings.broker.admission.signing import find_key_problems
from tidings.broker.config.node_settings import (
    Config,
    ConfigError,
    OtherChannel,
    address_of,
    list_addresses,
)
from tidings.broker.config.preprocessor_table import (
    PreprocessorTable,
    find_preprocessor_problems,
)
from tidings.files import find_problems
from tidings.filters import Attributes, parse
from tidings.model import AttributesError, FilterError, Problem
from tidings.routing.protocol import Limits, Times


def find_setting_problems(found: Config) -> Iterator[Problem]:
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
    if found.show_token and found.places != "preprocessor":
        yield Problem(
            ("show_token",),
            'found show_token without places = "preprocessor", expected both',
        )
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
    places = [
        ("listen", found.listen),
        *(("upstream", one) for one in list_addresses(found.upstream)),
    ]
    if found.direct is not None and found.direct.address:
        places.append(("direct", found.direct.address))
    places += [("public", found.public)] if found.public else []
    for name, text in places:
        try:
            address_of(text, name)
        except ConfigError as problem:
            yield Problem((name,), str(problem))


def _find_channel_problems(found: Config) -> Iterator[Problem]:
    """The problems with other channels, and with the nodes above that these channels use."""
    if found.upstream == []:
        yield Problem(("upstream",), "upstream: found no address, expected at least one")
    for name, given in found.upstreams.items():
        where = f"upstreams.{name}"
        if not name or not given:
            sentence = f"{where}: found no name or no address, expected both"
            yield Problem(("upstreams", name), sentence)
        for text in list_addresses(given):
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


def find_grant_problems(grants: Mapping[str, str] | None) -> list[Problem]:
    """The problems of [grants]."""
    return [
        Problem(("grants", name), f"grants: {name}: {reason}")
        for name, reason in find_key_problems(grants or {})
    ]


def find_ticket_problems(tickets: Mapping[str, str] | None) -> list[Problem]:
    """The problems of [tickets]."""
    return [
        Problem(("tickets", name), f"tickets: {name}: {reason}")
        for name, reason in find_key_problems(tickets or {})
    ]


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


def find_limit_problems(data: dict[str, Any]) -> Iterator[Problem]:
    limits = data.get("limits", {})
    if isinstance(limits, dict):
        yield from find_problems(limits, Limits, ("limits",))


def find_token_problems(tokens: dict[str, str | TokenRights]) -> Iterator[Problem]:
    """The problems with tokens. A message never shows the token itself."""
    for token, value in tokens.items():
        grant = TokenRights(value) if isinstance(value, str) else value
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
        if isinstance(grant.channels, dict) and not grant.channels:
            sentence = "tokens: channels: found an empty table, expected at least one channel"
            yield Problem((*place, "channels"), sentence)
        for where, _, text in _list_limits(grant):
            try:
                parse(text)
            except FilterError as problem:
                yield Problem(place, f"tokens: {where}: {problem}")
                break  # channels without a filter of their own would repeat this problem


def find_token_oddities(
    tokens: Mapping[str, str | TokenRights], declared: Mapping[str, Attributes | None], own: str
) -> Iterator[Problem]:
    """Tokens that are probably wrong: those with a `within` that can never match. `declared` maps
    each channel to the attributes that the file declares for it, if any; `own` is the channel of
    tokens that name no channel."""
    for token, value in tokens.items():
        grant = TokenRights(value) if isinstance(value, str) else value
        for where, channel, text in _list_limits(grant):
            attributes = declared.get(own if channel is None else channel)
            reason = _explain_never(text, attributes)
            if reason:
                sentence = f"tokens: {where}: {reason}; {grant.name!r} may subscribe to nothing"
                yield Problem(("tokens", token), sentence)
                if channel is None:
                    break  # channels without a filter of their own would repeat this


def _list_limits(grant: TokenRights) -> Iterator[tuple[str, str | None, str]]:
    """The filters of a token, each with its key and its channel; None means all channels without a
    filter of their own."""
    if grant.within:
        yield "within", None, grant.within
    for channel, one in grant.by_channel.items():
        if one.within and one.within != grant.within:
            yield f"channels.{channel}.within", channel, one.within


def _explain_never(text: str, attributes: Attributes | None) -> str:
    """Why a filter can never match; empty if it can match."""
    try:
        found = parse(text, attributes=attributes)
    except FilterError:  # the filter is for another channel, whose attributes have other types
        found = parse(text)
    return found.note if found.never else ""
