"""Measures the gain from a link that bypasses the tree, when one of many subscribers is interested.

    two_ways.py    the same notifications through three routers, and over a second link

Used only by route_bench.py and route_tables.py. Start at two_ways.py.
"""

from tidings.studies.network.direct.two_ways import DirectWay, TwoWays, measure_direct

__all__ = ["DirectWay", "TwoWays", "measure_direct"]
