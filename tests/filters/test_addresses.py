"""IP addresses as text that sorts as they do, and networks as intervals of it."""

from __future__ import annotations

import ipaddress
import random

import pytest
from tests.repeats import draws

from tidings.filters.values.inet import (
    address,
    in_network,
    network,
    network_between,
    network_ends,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0.0.0.0", "400000000"),
        ("10.0.0.1", "40a000001"),
        ("255.255.255.255", "4ffffffff"),
        ("::", "6" + "0" * 32),
        ("2001:db8::1", "620010db8" + "0" * 23 + "1"),
        ("2001:0DB8:0:0::1", "620010db8" + "0" * 23 + "1"),
        ("::ffff:10.0.0.1", "6" + "0" * 20 + "ffff0a000001"),
        ("", None),
        ("10.0.0", None),
        ("10.0.0.256", None),
        ("10.0.0.01", None),
        (" 10.0.0.1", None),
        ("10.0.0.0/8", None),
        ("::g", None),
    ],
)
def test_address(text: str, expected: str | None) -> None:
    assert address(text) == expected


Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def random_address(rng: random.Random) -> Address:
    """Of either version; often near another, near an end, or of few bits."""
    version, bits = rng.choice(((4, 32), (6, 128)))
    number = rng.choice(
        (rng.getrandbits(bits), rng.getrandbits(8), 2**bits - 1 - rng.getrandbits(8))
    )
    return ipaddress.IPv4Address(number) if version == 4 else ipaddress.IPv6Address(number)


def sortable(ip: Address) -> str:
    found = address(str(ip))
    assert found is not None
    return found


def test_the_order_of_texts_is_the_order_of_addresses(seed: int) -> None:
    rng = random.Random(seed)
    some = {random_address(rng) for _ in range(2_000)}
    by_number = sorted(some, key=lambda ip: (ip.version, int(ip)))
    assert [sortable(ip) for ip in by_number] == sorted(sortable(ip) for ip in some)
    assert len({sortable(ip) for ip in some}) == len(some)


def test_networks_and_their_ends(seed: int) -> None:
    rng = random.Random(seed)
    hits = 0
    for _ in draws(2_000, lambda: hits > 100):
        ip = random_address(rng)
        text = f"{ip}/{rng.randint(0, ip.max_prefixlen)}"
        first, last = network_ends(text)
        again = network_between((first, 0), (last, 1))
        assert again == str(ipaddress.ip_network(text, strict=False))
        near = ipaddress.ip_network(text, strict=False)
        for other in (ip, near[0], near[-1], random_address(rng)):
            expected = in_network(str(other), text)
            assert (first <= sortable(other) <= last) is expected
            hits += expected is False
    assert hits > 100


@pytest.mark.parametrize(
    ("ip", "net", "expected"),
    [
        ("10.1.2.3", "10.0.0.0/8", True),
        ("10.1.2.3", "10.9.9.9/8", True),  # host bits are ignored
        ("10.1.2.3", "10.1.2.3", True),
        ("10.1.2.4", "10.1.2.3", False),
        ("255.0.0.1", "0.0.0.0/0", True),
        ("2001:db8::5", "2001:db8::/32", True),
        ("2001:db9::5", "2001:db8::/32", False),
        ("::a00:1", "10.0.0.0/8", False),
        ("10.0.0.1", "::/0", False),
        ("nowhere", "10.0.0.0/8", None),
        ("10.0.0.1", "10.0.0.0/33", None),
        ("10.0.0.1", "", None),
    ],
)
def test_in_network(ip: str, net: str, expected: bool | None) -> None:
    assert in_network(ip, net) is expected


@pytest.mark.parametrize("text", ["", "10.0.0.0/33", "::/129", "10.0.0.0/x", "10.0.0", "/8"])
def test_what_is_no_network(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        network(text)


A, B, C = "40a000000", "40a000003", "40a000004"  # 10.0.0.0, .3, .4


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        ((A, 0), (B, 1), "10.0.0.0/30"),
        ((A, 0), (A, 1), "10.0.0.0/32"),
        (("400000000", 0), ("4ffffffff", 1), "0.0.0.0/0"),
        (("6" + "0" * 32, 0), ("6" + "f" * 32, 1), "::/0"),
        ((A, 0), (C, 1), None),  # five addresses
        ((B, 0), (C, 1), None),  # two, but of two networks
        ((A, 1), (B, 1), None),
        ((A, 0), (B, 0), None),
        ((B, 0), (A, 1), None),
        ((), (B, 1), None),
        ((A, 0), (), None),
        ((A, 0), ("6" + "f" * 32, 1), None),
        (("40A000000", 0), ("40A000003", 1), None),  # not as we write it
        (("40a00000", 0), (B, 1), None),
        (("50a000000", 0), ("50a000003", 1), None),
        (("4zzzzzzzz", 0), (B, 1), None),
        ((5, 0), (5, 1), None),
        (("", 0), ("", 1), None),
    ],
)
def test_network_between(
    first: tuple[object, ...], last: tuple[object, ...], expected: str | None
) -> None:
    assert network_between(first, last) == expected
