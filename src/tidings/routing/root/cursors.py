"""Named subscriptions: how far each has been confirmed.

    (owner, name) ──> filter and node, the serial up to which it is confirmed, and the numbers of
                      the nodes below up to there

A cursor is known to the application as one serial. The numbers are what a subscriber needs to find
out what came since: whoever comes back under the name begins with them, as if it had never left.

The node of a cursor stays although nobody is linked, and notifications are kept for it, as far as
the limits on what is kept allow. Cost: an entry for each node below, in memory and in checkpoints.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import msgspec

from tidings.model import TidingsError


class Cursor(msgspec.Struct, frozen=True, array_like=True):
    """See the top of the module. `total` counts the notifications of the node up to `serial`."""

    node: int
    interest: bytes
    serial: int
    total: int
    counts: dict[int, int]

    def confirm(self, serial: int, total: int, counts: Mapping[int, int]) -> Cursor:
        """The cursor after another confirmation. Numbers never go back."""
        new = {node: max(count, self.counts.get(node, 0)) for node, count in counts.items()}
        return msgspec.structs.replace(
            self, serial=serial, total=max(total, self.total), counts={**self.counts, **new}
        )


def key_of(owner: str, name: str) -> str:
    return f"{owner}\0{name}"


class Cursors:
    """The cursors of a channel, by owner and name."""

    def __init__(self, known: Mapping[str, Cursor], most: int) -> None:
        self.known = dict(known)
        self._most = most
        self._nodes = Counter(one.node for one in known.values())

    def holds(self, node: int) -> bool:
        """Does a named subscription need a node?"""
        return self._nodes[node] > 0

    @property
    def nodes(self) -> set[int]:
        return {node for node, many in self._nodes.items() if many}

    def done(self, serial: int) -> int:
        """The serial up to which everything is confirmed, at most the given one."""
        return min((one.serial for one in self.known.values()), default=serial)

    def need_room(self) -> None:
        if len(self.known) >= self._most:
            raise TidingsError(
                f"there are {len(self.known):,} named subscriptions, expected fewer than "
                f"{self._most:,}, which is the limit names"
            )

    def put(self, key: str, cursor: Cursor) -> None:
        self.remove(key)
        self.known[key] = cursor
        self._nodes[cursor.node] += 1

    def remove(self, key: str) -> Cursor | None:
        found = self.known.pop(key, None)
        if found is not None:
            self._nodes[found.node] -= 1
        return found
