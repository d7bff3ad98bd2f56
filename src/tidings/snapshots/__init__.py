"""A channel's subscriptions compiled: the content graph and the index over it, and what changes."""

from tidings.snapshots.identity import identity_of, need_whole
from tidings.snapshots.snapshot import Snapshot
from tidings.snapshots.versioned import Live
from tidings.snapshots.view import View

__all__ = ["Live", "Snapshot", "View", "identity_of", "need_whole"]
