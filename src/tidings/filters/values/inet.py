"""IP addresses as strings that sort like the addresses, so that a network is an interval."""

from __future__ import annotations

import ipaddress
import re
from functools import lru_cache

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@lru_cache(maxsize=65536)
def address(text: str) -> str | None:
    """An IP address as a sortable string: 4 or 6, then the address in hexadecimal."""
    try:
        ip = ipaddress.ip_address(text)
    except ValueError:
        return None
    return _sortable(ip.version, int(ip))


def _sortable(version: int, number: int) -> str:
    return f"4{number:08x}" if version == 4 else f"6{number:032x}"


@lru_cache(maxsize=65536)
def network(text: str) -> Network:
    """Parse a network such as `10.0.0.0/8`, or a single address; raise ValueError if the text is
    neither."""
    return ipaddress.ip_network(text, strict=False)


def network_ends(text: str) -> tuple[str, str]:
    """The first and the last address of a network, as sortable strings."""
    net = network(text)
    return (
        _sortable(net.version, int(net.network_address)),
        _sortable(net.version, int(net.broadcast_address)),
    )


def in_network(ip: str, net: str) -> bool | None:
    """Whether an address lies in a network; null if the address or the network is not valid."""
    try:
        return ipaddress.ip_address(ip) in network(net)
    except ValueError:
        return None


def network_between(first: tuple[object, ...], last: tuple[object, ...]) -> str | None:
    """The network that lies exactly between these two cuts; None if there is none.

    A cut is (sortable address, 0 for just before it or 1 for just after it).
    """
    if len(first) != 2 or len(last) != 2 or first[1] != 0 or last[1] != 1:
        return None
    low, high = _address_of(first[0]), _address_of(last[0])
    if low is None or high is None or low.version != high.version or int(low) > int(high):
        return None
    bits = (int(low) ^ int(high)).bit_length()
    net = ipaddress.ip_network(f"{low}/{low.max_prefixlen - bits}", strict=False)
    ends = (_sortable(net.version, int(net[0])), _sortable(net.version, int(net[-1])))
    return str(net) if ends == (first[0], last[0]) else None


def _address_of(text: object) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    if not isinstance(text, str) or not re.fullmatch(r"[46][0-9a-f]+", text, re.ASCII):
        return None
    number = int(text[1:], 16)
    if text[0] == "4" and len(text) == 9:
        return ipaddress.IPv4Address(number)
    return ipaddress.IPv6Address(number) if text[0] == "6" and len(text) == 33 else None
