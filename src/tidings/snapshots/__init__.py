"""A channel's subscriptions compiled: the content graph and the index over it, and what changes."""

from tidings.snapshots.building import (
    DistinctFilters,
    Forms,
    Graph,
    Nodes,
    build_graph,
    build_nodes,
    members_of,
)
from tidings.snapshots.identity import identity_of, need_whole
from tidings.snapshots.shape import Shape
from tidings.snapshots.snapshot import FORMAT, VERSION, Snapshot
from tidings.snapshots.verifying import Verification, verify_nodes
from tidings.snapshots.versioned import VersionedSnapshot
from tidings.snapshots.view import View

__all__ = [
    "FORMAT",
    "VERSION",
    "DistinctFilters",
    "Forms",
    "Graph",
    "Nodes",
    "Shape",
    "Snapshot",
    "Verification",
    "VersionedSnapshot",
    "View",
    "build_graph",
    "build_nodes",
    "identity_of",
    "members_of",
    "need_whole",
    "verify_nodes",
]
