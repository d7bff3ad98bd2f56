"""A channel's subscriptions compiled: the content graph and the index over it, and what changes."""

from tidings.snapshots.building import (
    Distinct,
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
from tidings.snapshots.verifying import Verified, verify_nodes
from tidings.snapshots.versioned import Live
from tidings.snapshots.view import View

__all__ = [
    "FORMAT",
    "VERSION",
    "Distinct",
    "Forms",
    "Graph",
    "Live",
    "Nodes",
    "Shape",
    "Snapshot",
    "Verified",
    "View",
    "build_graph",
    "build_nodes",
    "identity_of",
    "members_of",
    "need_whole",
    "verify_nodes",
]
