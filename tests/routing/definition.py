"""Oracles for the fast implementations, written directly from the definitions."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import TypeVar

from tidings.routing.forwarding.label_graph import Label, LabelGraph
from tidings.routing.root.interests import Placed
from tidings.routing.root.journal import Memory
from tidings.routing.root.records import Record

Neighbour = TypeVar("Neighbour", bound=Hashable)


def labels_by_definition(
    graph: LabelGraph[Neighbour], subscribed: Mapping[Neighbour, set[int]]
) -> dict[int, dict[Neighbour, Label]]:
    """Every label, worked out node by node from what each neighbour subscribes to."""
    found: dict[int, dict[Neighbour, Label]] = {}
    for number in graph:
        above = graph.ancestors(number)
        found[number] = {}
        for neighbour, wanted in subscribed.items():
            if number in wanted:
                found[number][neighbour] = (number,)
            elif above & wanted:
                found[number][neighbour] = graph.lowest(above & wanted)
    return found


def memory_of(records: Iterable[Record], start: Memory, placed: Mapping[int, Placed]) -> Memory:
    """What was written down: a memory, and the records since."""
    found = Memory(
        start.lineage, start.serial, list(placed.values()), dict(start.counts), dict(start.totals),
        dict(start.latest), dict(start.publishers),
    )  # fmt: skip
    for record in records:
        found.publishers[record.publisher] = record.stamp
        if record.serial:
            found.serial = record.serial
        for mark in record.marks:
            if mark.node in placed:
                found.counts[mark.node] = mark.number
                found.latest[mark.node] = record.serial
        for node in record.matched:
            if node in placed:
                found.totals[node] = found.totals.get(node, 0) + 1
    return found
