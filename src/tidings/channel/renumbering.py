"""Replaces nodes by new ones with the same interests; the old numbers then refer to the new nodes.

    before   4 mlb                              4 is gone, and equal to 17
    after    17 mlb                             tags with 4 mean 17; subscribers to 4 continue at 17

A rendezvous point does this when the meaning of an interest has changed, and with it the nodes
below the interest (see interests/graph/changed_nodes.py).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Protocol

import msgspec

from tidings.routing.protocol import MOST_STEPS
from tidings.routing.root import (
    Cursor,
    History,
    Memory,
    Placed,
    Places,
    RemovedNode,
    load_graph,
    make_steps,
)


class Journal(Protocol):
    """The part of a journal's interface that this module needs."""

    @property
    def history(self) -> History: ...
    def interests(self) -> list[tuple[int, bytes]]: ...
    def memory(self, placed: Sequence[Placed], /) -> Memory: ...
    def add_node(self, node: int, interest: bytes, /) -> None: ...
    def set_owners(self, node: int, owners: tuple[str, ...], /) -> None: ...
    def drop_node(self, node: int, gone: RemovedNode, /) -> None: ...
    def set_cursor(self, key: str, cursor: Cursor | None, /) -> None: ...


def renumber(
    journal: Journal,
    nodes: Collection[int],
    before: Sequence[Placed],
    after: Sequence[Placed],
    equal_to: Callable[[int], Iterable[int]],
    alike: Callable[[int], Iterable[int]],
) -> dict[int, int]:
    """Give nodes new numbers; return a mapping from old to new numbers. `before` has all nodes as
    placed by the old meaning of interests, and `after` by the new one. `equal_to` returns all nodes
    with the same interest as a node, and `alike` those with the same identity, both by the new
    meaning. Subscribers and named subscriptions continue at the new nodes.

    The caller must begin a life just before the call, with no other change in between, and must
    write the journal after the call.
    """
    known, read = ({*Places.of(one).numbers.tolist()} for one in (before, after))
    others = [Placed(node, (), ()) for node in {*nodes} - known]
    memory = journal.memory([*before, *others] if others else before)
    # a named subscriber that returns gets, of the nodes with its interest, the lowest number
    named = {one.node for one in memory.cursors.values()} & read & known
    gone = sorted({*nodes} | {node for node in named if min(equal_to(node)) != node})
    if not gone:
        return {}
    interests, history = dict(journal.interests()), journal.history
    # all old nodes are removed before the new nodes are added, so no new node covers an old one
    version = max(history.base, history.version)
    found = {node: version + len(gone) + at for at, node in enumerate(gone, 1)}
    was = load_graph(before, history)
    steps = make_steps(found, was, load_graph(after), memory, equal_to, alike)
    for node, number in found.items():
        above = was.parents(node) if node in was else ()
        journal.drop_node(node, RemovedNode(
            number - len(gone), (number,), above, count=memory.counts.get(node, 0),
            latest=memory.latest.get(node, 0), step=steps.get(node),
        ))  # fmt: skip
    for node, number in found.items():
        journal.add_node(number, interests[node])
        journal.set_owners(number, memory.owners.get(node, ()))
    for key, cursor in memory.cursors.items():
        step = steps.get(cursor.node)
        if step is not None and len(cursor.steps) < MOST_STEPS:
            moved = msgspec.structs.replace(cursor, node=step.node, steps=(*cursor.steps, step))
            journal.set_cursor(key, moved)
    return found
