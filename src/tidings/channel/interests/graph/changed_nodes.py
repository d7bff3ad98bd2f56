"""Finds the nodes that have different nodes below them, now that filters are read differently.

A subscriber knows the numbers of notifications at all nodes below its own. It treats an unknown
node as new, with numbers that begin with 1, and learns of missing numbers only at nodes that are
still below its own. So no node may begin or cease to cover an existing node. A node that would do
so is replaced by a new node, and its subscribers continue there.
"""

from __future__ import annotations

from collections.abc import Sequence

from tidings.routing.root import Placed


def find_changed(before: Sequence[Placed], after: Sequence[Placed]) -> set[int]:
    """The nodes of `after` that do not have the same nodes below them as in `before`, and those
    that are only in `after`. In both arguments, each node comes after its parents.

    Cost: proportional to the nodes and the nodes above each of them.
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
