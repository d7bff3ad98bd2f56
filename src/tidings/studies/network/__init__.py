""""""

from tidings.studies.network.route_bench import PARTS, bench_route
from tidings.studies.network.route_tables import route_lines, route_sections

__all__ = [
    "PARTS",
    "bench_route",
    "route_lines",
    "route_sections",
]
