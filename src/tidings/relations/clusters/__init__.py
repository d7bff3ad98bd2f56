"""The clustering relation store: messages that were forwarded, grouped by place, time, tag and
person.

    terms ──> elements ──> clusters: centres in an ordered index, members around them
                 `──────> nodes: what was forwarded with these terms, to which hop, for which ids

    curve.py          places on a space-filling curve; a box around a place is a few ranges
    centres.py        an ordered index over the centres of clusters
    grouping.py       few clusters: a sweep for times, greedily for places
    cluster.py        clusters of places and of times; values are added and removed
    elements.py       the stored values that are related to a term, with weights
    cluster_store.py  nodes: learn, find, cancel, age; the bound on their number
    full_scan.py      a store without any index: the reference for tests

This folder does not deal with filters; merit/ does. Users get `ClusterStore` from
`tidings.relations`. Start at cluster_store.py, then elements.py.
"""

from tidings.relations.clusters.cluster_store import (
    ClusterStore,
    ForwardedNode,
    Hit,
    StoreSettings,
)
from tidings.relations.clusters.elements import Elements
from tidings.relations.clusters.full_scan import FullScan, relate

__all__ = [
    "ClusterStore",
    "Elements",
    "ForwardedNode",
    "FullScan",
    "Hit",
    "StoreSettings",
    "relate",
]
