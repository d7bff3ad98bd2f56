"""The compiled subscriptions of a channel at one version: content graph, members and index.

    (id, text) ──building──> Snapshot, immutable, in a folder
                                |  + changes since (incremental_edges)
                                v
                             versioned ──> View at a version ──> nodes and subscriptions of a batch

    snapshot.py            the files: nodes, edges, ids, index
    building.py            turns subscriptions into arrays
    versioned.py           a snapshot and later changes, at any version
    view.py                one version, ready to match; it tags as a fresh compilation would
    named_members.py       named parts of subscriptions that are true on the rows of a batch
    incremental_edges.py   new filters linked into the compiled graph, once each
    identity.py            which snapshot a directory holds, and whether it is complete
    remote.py              snapshots at addresses such as s3://bucket/snapshot
    verifying.py           checks coverings again for a sample of nodes
    shape.py               depth and width of the graph

Users import `Snapshot` (docs/spark.md); the rest is for spark, studies and cli. Start at
snapshot.py, then view.py.
"""

from tidings.snapshots.building import (
    BuiltGraph,
    BuiltNodes,
    DistinctFilters,
    Forms,
    build_graph,
    build_nodes,
    members_of,
)
from tidings.snapshots.identity import identity_of, need_whole
from tidings.snapshots.named_members import NamedMembers
from tidings.snapshots.shape import Shape
from tidings.snapshots.snapshot import FORMAT, LANGUAGE, VERSION, Snapshot, language_in
from tidings.snapshots.verifying import Verification, verify_nodes
from tidings.snapshots.versioned import VersionedSnapshot
from tidings.snapshots.view import View

__all__ = [
    "FORMAT",
    "LANGUAGE",
    "VERSION",
    "BuiltGraph",
    "BuiltNodes",
    "DistinctFilters",
    "Forms",
    "NamedMembers",
    "Shape",
    "Snapshot",
    "Verification",
    "VersionedSnapshot",
    "View",
    "build_graph",
    "build_nodes",
    "identity_of",
    "language_in",
    "members_of",
    "need_whole",
    "verify_nodes",
]
