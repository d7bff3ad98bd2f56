"""What the changes add up to: who subscribes to what, and which filter has which node.

Nodes are numbered from 1 on in the order in which their filters first came. A number stays with its
filter for good, also when nobody asks for it any more; so the identities are never dropped.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tidings.store.records import Id, LogError, Record

Subscriptions = dict[Id, tuple[str, int]]


class Nodes:
    """The identities of filters, in the order of their numbers."""

    def __init__(self, keys: Iterable[bytes] = ()) -> None:
        self.numbers: dict[bytes, int] = {key: number for number, key in enumerate(keys, 1)}

    def apply(self, record: Record, folder: Path) -> None:
        """Take the node of a change; LogError when it is not one that can be."""
        known = len(self.numbers)
        if record.key is None:
            possible = record.node <= known
        else:
            possible = record.node == known + 1 and record.key not in self.numbers
        if not possible:
            raise LogError(
                f"the log in '{folder}' is damaged: version {record.version} has the node "
                f"{record.node}, and there are {known} filters before it"
            )
        if record.key is not None:
            self.numbers[record.key] = record.node


def apply(record: Record, subscriptions: Subscriptions) -> None:
    """Let a change take effect."""
    if record.filter is None:
        subscriptions.pop(record.id, None)
    else:
        subscriptions[record.id] = (record.filter, record.node)
