"""Addresses of routers: tidings://host:7400/channel, or tidings+tls://."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import urlsplit

from tidings.model import EnvironmentProblem

PORT = 7400


class RouterUrl(NamedTuple):
    host: str
    port: int
    channel: str
    secure: bool  # over TLS


def parse_address(address: str) -> RouterUrl:
    """Parse the address of a router; EnvironmentProblem if it is invalid."""
    try:
        parts = urlsplit(address)
        port, host = parts.port or PORT, parts.hostname
    except ValueError:
        port, host = 0, None
    if not host or parts.scheme not in ("tidings", "tidings+tls"):
        raise EnvironmentProblem(
            f"found the address {address!r}, expected one such as 'tidings://127.0.0.1:7400'"
        )
    return RouterUrl(host, port, parts.path.lstrip("/"), parts.scheme == "tidings+tls")
