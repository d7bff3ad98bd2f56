"""Benchmarks of the network, compared with mosquitto and nats-server: `tidings bench route`.

    client ──a block, repeatedly──> forwarding processes ──> client, at one socket per neighbour

    route_bench.py     the parts of the benchmark, and the report
    route_flow.py      sends notifications through a running system, at full or at a given rate
    route_tidings.py, route_peers.py    start routers, mosquitto and nats-server
    route_durable.py   measures durable publishing
    route_mixed.py     measures durable publishing against many filters, compared with JetStream
    route_parts.py     measures the hand-over of notifications that were tagged elsewhere
    route_preprocessors.py   measures what preprocessors save a rendezvous point
    route_interests.py measures a rendezvous point with a million interests
    steady_publishing.py     publishes meanwhile, at a steady rate
    direct/            measures links that bypass the tree
    channels/          measures many channels without traffic
    route_lookup.py    measures a router's work for a header and for a subscription
    route_modes.py     measures each mode of forwarding on the same notifications
    route_tables.py    formats the results as tables

This folder is for cli. Start at route_bench.py.
"""

from tidings.studies.network.route_bench import PARTS, bench_route
from tidings.studies.network.route_tables import route_lines, route_sections

__all__ = [
    "PARTS",
    "bench_route",
    "route_lines",
    "route_sections",
]
