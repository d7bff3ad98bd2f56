"""After filters are read differently, finds nodes that now have other nodes below them.

A subscriber knows the numbers of notifications at all nodes below its own. If a node is unknown to
the subscriber, the subscriber takes it for a new node, whose numbers begin with 1. Missing numbers
are detected only at nodes that are still below the subscriber's own. So when filters get another
meaning, no node may start or stop covering a node that exists already. A node that would start or
stop covering another is replaced by a new node, and its subscribers continue at the new node.
"""

from __future__ import annotations

from collections.abc import Sequence

from tidings.routing.root import Placed


def find_changed(before: Sequence[Placed], after: Sequence[Placed]) -> set[int]:
    """The nodes of `after` that have other nodes below them than in `before`, and those that are
    not in `before`. In both arguments, each node comes after its parents.

    Cost: proportional to the number of nodes and of pairs of a node and a node above it.
    """
    old, new = _ancestors(before), _ancestors(after)
    found = new.keys() - old.keys()
    for node in old.keys() | new.keys():
        above, was_above = new.get(node), old.get(node)
        if above is None or was_above is None:
            found |= above or was_above or frozenset()
        else:
            found |= above ^ was_above
    return found & new.keys()


def _ancestors(placed: Sequence[Placed]) -> dict[int, frozenset[int]]:
    found: dict[int, frozenset[int]] = {}
    for one in placed:
        found[one.node] = frozenset(one.parents).union(*(found[up] for up in one.parents))
    return found
