"""Ports that are chosen before a server starts."""

from __future__ import annotations

from socket import create_server

import pytest

from tidings.studies.host.ports import free_ports, is_listening


def test_nobody_else_gets_a_chosen_port() -> None:
    """Without the sockets that stay bound, one of 200 would be given again about 28 times."""
    ports = free_ports(200)
    assert len(set(ports)) == 200
    for _ in range(2000):
        with create_server(("127.0.0.1", 0)) as other:
            assert other.getsockname()[1] not in ports


def test_one_server_after_another_listens_at_a_chosen_port() -> None:
    (port,) = free_ports(1)
    for _ in range(2):
        assert not is_listening(port)
        with create_server(("127.0.0.1", port)):
            assert is_listening(port)
            with pytest.raises(OSError, match="in use"):
                create_server(("127.0.0.1", port))
