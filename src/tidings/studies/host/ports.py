"""Chooses ports before the servers that use them start, so that other processes can be told the
ports."""

from __future__ import annotations

import socket
from socket import create_connection


def free_ports(count: int) -> list[int]:
    """Different ports that are not in use, and that the system assigns to no other process while
    this one runs: a socket stays bound to each, and never listens. Servers can listen on these
    ports repeatedly if they set SO_REUSEADDR, as nearly all do."""
    found = []
    for _ in range(count):
        one = socket.socket()
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        one.bind(("127.0.0.1", 0))
        found.append(int(one.getsockname()[1]))
        one.detach()  # the socket stays open until this process ends
    return found


def is_listening(port: int) -> bool:
    """Whether a server on this machine accepts connections at a port."""
    try:
        with create_connection(("127.0.0.1", port), timeout=1):
            return True
    except OSError:
        return False
