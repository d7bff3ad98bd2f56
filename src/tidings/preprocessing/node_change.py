"""A change to a node, in the form in which snapshots store changes to subscriptions."""

from __future__ import annotations

import msgspec


class NodeAsChange(msgspec.Struct, frozen=True):
    """A `tidings.snapshots.versioned.ChangeLike`. Each node counts as one subscription, and the
    number of the node is the id of the subscription. The versions begin after the version of the
    snapshot, and have no gaps."""

    version: int
    id: int
    filter: str | None
    node: int
