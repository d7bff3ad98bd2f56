"""Links between routers and agents: frames over TCP, with bounds on what waits."""

from tidings.network.link import Link, Policy

__all__ = ["Link", "Policy"]
