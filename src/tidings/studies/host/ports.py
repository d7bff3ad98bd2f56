"""Chooses ports before the servers that use them start, so that other processes can be told the
ports."""

from __future__ import annotations

from socket import create_connection, create_server


def free_ports(count: int) -> list[int]:
    """Different ports that are not in use. The system does not assign any of them again soon."""
    servers = [create_server(("127.0.0.1", 0)) for _ in range(count)]
    found = [int(one.getsockname()[1]) for one in servers]
    for one in servers:
        one.close()
    return found


def is_listening(port: int) -> bool:
    """Whether a server on this machine accepts connections at a port."""
    try:
        with create_connection(("127.0.0.1", port), timeout=1):
            return True
    except OSError:
        return False
