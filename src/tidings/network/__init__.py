"""Links between routers and agents: frames over TCP, with bounds on what waits."""

from tidings.network.agent import connect
from tidings.network.blocking import connect_blocking
from tidings.network.forwarding import Forwarder, measure_costs
from tidings.network.frame_cache import FrameCache
from tidings.network.link import Link, Policy
from tidings.network.lives import draw_life
from tidings.network.tls import (
    client_context,
    load_authorities,
    load_certificate,
    sentence_of,
    server_context,
)
from tidings.network.tls_probe import TlsProbe
from tidings.network.watching import Watching, watch

__all__ = [
    "Forwarder",
    "FrameCache",
    "Link",
    "Policy",
    "TlsProbe",
    "Watching",
    "client_context",
    "connect",
    "connect_blocking",
    "draw_life",
    "load_authorities",
    "load_certificate",
    "measure_costs",
    "sentence_of",
    "server_context",
    "watch",
]
