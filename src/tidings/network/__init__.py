"""Links over TCP and TLS, fast forwarding of frames, and the agent that applications use.

    application ── Agent ── Link ──frames──> Link ── broker ── Forwarder ──frames──> Link ── ...

    agent.py, blocking/       subscribe and publish, with asyncio or in a thread of its own
    agents/                   what agents provide: subscriptions, the state of the link, errors
    link.py                   one connection, with bounds on what waits
    forwarding.py             frames through a router; their payloads are never decoded
    scanning.py, scan_kernels.py    the same with compiled kernels, in a busy router
    frame_cache.py            the latest frames, for neighbours that missed some
    tls.py, tls_probe.py, router_url.py, lives.py, watching.py    helpers of links

Users get `connect`, `connect_blocking` and the classes around them from `tidings`. All other names
are for broker, cli and studies. Start at agent.py for what users call, or at forwarding.py for what
makes routers fast.
"""

from tidings.network.agent import Agent, connect
from tidings.network.agents import (
    Broken,
    Header,
    LinkState,
    Outdated,
    Preprocessors,
    Refusal,
    SignedGrant,
    Subscription,
    TimedOut,
    encode_attributes,
)
from tidings.network.blocking import BlockingAgent, BlockingSubscription, connect_blocking
from tidings.network.forwarding import Forwarder, measure_costs
from tidings.network.frame_cache import FrameCache
from tidings.network.link import Link, Policy
from tidings.network.lives import draw_life
from tidings.network.router_url import RouterUrl, parse_address, parse_addresses
from tidings.network.scanning import ask_for_kernels, load_scan_kernels
from tidings.network.tls import (
    client_context,
    context_for,
    load_authorities,
    load_certificate,
    sentence_of,
    server_context,
)
from tidings.network.tls_probe import TlsProbe
from tidings.network.watching import Watching, inspect, watch

__all__ = [
    "Agent",
    "BlockingAgent",
    "BlockingSubscription",
    "Broken",
    "Forwarder",
    "FrameCache",
    "Header",
    "Link",
    "LinkState",
    "Outdated",
    "Policy",
    "Preprocessors",
    "Refusal",
    "RouterUrl",
    "SignedGrant",
    "Subscription",
    "TimedOut",
    "TlsProbe",
    "Watching",
    "ask_for_kernels",
    "client_context",
    "connect",
    "connect_blocking",
    "context_for",
    "draw_life",
    "encode_attributes",
    "inspect",
    "load_authorities",
    "load_certificate",
    "load_scan_kernels",
    "measure_costs",
    "parse_address",
    "parse_addresses",
    "sentence_of",
    "server_context",
    "watch",
]
