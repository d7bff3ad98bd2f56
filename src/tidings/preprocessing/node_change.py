"""A change to a node, in the form that snapshots use for changes to subscriptions."""

from __future__ import annotations

import msgspec


class Change(msgspec.Struct, frozen=True):
    """A `tidings.snapshots.versioned.ChangeLike`: each node is one subscription, whose id is the
    number of the node. Versions follow the version of the snapshot, without gaps."""

    version: int
    id: int
    filter: str | None
    node: int
