"""Ports for servers that other processes must know before they start."""

from __future__ import annotations

from socket import create_connection, create_server


def free_ports(count: int) -> list[int]:
    """Ports that nobody uses, each another. The system gives none of them again soon."""
    servers = [create_server(("127.0.0.1", 0)) for _ in range(count)]
    found = [int(one.getsockname()[1]) for one in servers]
    for one in servers:
        one.close()
    return found


def is_listening(port: int) -> bool:
    """Whether a server of this machine takes connections."""
    try:
        with create_connection(("127.0.0.1", port), timeout=1):
            return True
    except OSError:
        return False
