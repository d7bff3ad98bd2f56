"""Addresses of routers: tidings://host:7400/channel, tidings://one:7400,two:7400, or tidings+tls://."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import urlsplit

from tidings.model import EnvironmentProblem

PORT = 7400
SCHEMES = ("tidings", "tidings+tls")


class RouterUrl(NamedTuple):
    host: str
    port: int
    channel: str
    secure: bool  # over TLS


def parse_address(address: str) -> RouterUrl:
    """Parse the address of a router; raise EnvironmentProblem if it is invalid."""
    try:
        parts = urlsplit(address)
        host, problem = parts.hostname, ""
        port = PORT if parts.port is None else parts.port
    except ValueError as found:
        host, port, problem = None, 0, f" ({found})".lower()
    if not host or not port or parts.scheme not in SCHEMES:
        raise EnvironmentProblem(
            f"found the address {address!r}{problem}, expected one such as "
            f"'tidings://127.0.0.1:{PORT}'"
        )
    return RouterUrl(host, port, parts.path.lstrip("/"), parts.scheme == "tidings+tls")


def parse_addresses(address: str | Sequence[str]) -> tuple[RouterUrl, ...]:
    """Parse the addresses of several routers of one channel: a list of addresses, or one address
    that has several hosts, with commas between them. Raise EnvironmentProblem if an address is
    invalid, or if the addresses differ in more than host and port."""
    found: list[RouterUrl] = []
    for one in (address,) if isinstance(address, str) else address:
        head, mark, rest = one.partition("://")
        if head not in SCHEMES or not mark:
            hint = f"tidings://{rest if mark else one}" if one else f"tidings://127.0.0.1:{PORT}"
            raise EnvironmentProblem(
                f"found the address {one!r}, which does not begin with tidings:// or "
                f"tidings+tls://, expected one such as {hint!r}"
            )
        hosts, slash, channel = rest.partition("/")
        found += [parse_address(f"{head}://{host}{slash}{channel}") for host in hosts.split(",")]
    if not found:
        raise EnvironmentProblem("found no address of a router, expected at least one")
    first = found[0]
    for other in found:
        if other[2:] != first[2:]:
            raise EnvironmentProblem(
                f"found the addresses {_text(first)} and {_text(other)}, expected addresses of one "
                "channel, all with TLS or all without"
            )
    return tuple(dict.fromkeys(found))


def _text(place: RouterUrl) -> str:
    scheme = "tidings+tls" if place.secure else "tidings"
    return f"{scheme}://{place.host}:{place.port}" + (f"/{place.channel}" if place.channel else "")
