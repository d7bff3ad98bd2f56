"""Which nodes have gained existing nodes below them, because filters are read differently.

A subscriber knows the numbers of notifications at all nodes below its own, and treats a node that
it does not know as a new one, whose numbers begin with 1. So a node must not come to lie above an
existing one: it is replaced by a new node, and its subscribers start over.
"""

from __future__ import annotations

from collections.abc import Sequence

from tidings.routing.root import Placed


def find_gained(before: Sequence[Placed], after: Sequence[Placed]) -> set[int]:
    """The nodes of `after` that have a node below them that was not below them in `before`, and
    those that only `after` has. In both, each node comes after its parents.

    Cost: proportional to the nodes and the nodes above each of them.
    """
    old, new = _ancestors(before), _ancestors(after)
    found = new.keys() - old.keys()
    for node, above in new.items():
        found |= above - old.get(node, above)
    return found


def _ancestors(placed: Sequence[Placed]) -> dict[int, frozenset[int]]:
    found: dict[int, frozenset[int]] = {}
    for one in placed:
        found[one.node] = frozenset(one.parents).union(*(found[up] for up in one.parents))
    return found
