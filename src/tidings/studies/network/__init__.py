"""The network measured, beside mosquitto and nats-server: `tidings bench route`.

    client ──block, again and again──> forwarding processes ──> client, a socket for each neighbour

    route_bench.py     the parts, and the report
    route_flow.py      notifications through a running system, at full speed or at a given rate
    route_tidings.py, route_peers.py    routers, mosquitto and nats-server, ready to forward
    route_durable.py   publishing that is acknowledged from the disk
    route_lookup.py    what a router does for a header and for a subscription, without a network
    route_modes.py     the same notifications in each way of forwarding
    route_tables.py    all of it as tables

For cli. Start at route_bench.py.
"""

from tidings.studies.network.route_bench import PARTS, bench_route
from tidings.studies.network.route_tables import route_lines, route_sections

__all__ = [
    "PARTS",
    "bench_route",
    "route_lines",
    "route_sections",
]
