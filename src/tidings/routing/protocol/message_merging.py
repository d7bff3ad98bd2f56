"""Merges messages about single nodes to the same neighbour into one message about all of them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import msgspec

from tidings.routing.protocol import messages as m

Sent = tuple[Hashable, m.Message]
Nodes = m.Subscribe | m.Unsubscribe | m.Refuse | m.Locate


class _Run:
    __slots__ = ("at", "first", "nodes")

    def __init__(self, at: int, first: Nodes) -> None:
        self.at = at
        self.first = first
        self.nodes = [*first.nodes]


def merge_messages(sent: Iterable[Sent]) -> list[Sent]:
    """Merge adjacent messages of the same kind to the same neighbour. Each neighbour still gets its
    messages in the same order."""
    found: list[Sent] = []
    runs: list[_Run] = []
    last: dict[Hashable, _Run] = {}
    for to, message in sent:
        if not isinstance(message, Nodes):
            last.pop(to, None)
            found.append((to, message))
            continue
        run = last.get(to)
        if (
            run is not None
            and type(run.first) is type(message)
            and run.first.epoch == message.epoch
            and _is_placed(run.first) == _is_placed(message)
        ):
            run.nodes += message.nodes
            continue
        run = last[to] = _Run(len(found), message)
        runs.append(run)
        found.append((to, message))
    for run in runs:
        if len(run.nodes) > len(run.first.nodes):
            merged = msgspec.structs.replace(run.first, nodes=tuple(run.nodes))
            found[run.at] = found[run.at][0], merged
    return found


def _is_placed(message: Nodes) -> bool:
    return isinstance(message, m.Subscribe) and message.placed
