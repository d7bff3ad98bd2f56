"""Measures adaptive forwarding: the same notifications through a router in each of its modes.

    root ──frames──> [router] ──> 10 neighbours        measured: the router's forwarding alone

The graph is flat (no coverings), shallow (3 levels) or deep (a chain), or there is only one
neighbour, and it subscribes to everything. Headers arrive in the form in which a root with this
mode writes them.
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Iterator

import msgspec

from tidings.network import Forwarder, measure_costs
from tidings.routing.forwarding import Downstream, Forwarding, Mode, Router, first_label, ways_of
from tidings.routing.protocol import frames, messages as m

NEIGHBOURS = tuple("abcdefghij")
PAYLOAD = 200  # bytes
FRAMES = 2000


class GraphShape(msgspec.Struct, frozen=True):
    """A content graph (the parents of each node), and the share of nodes that a neighbour
    subscribes to."""

    parents: dict[int, list[int]]
    wanted: float
    neighbours: tuple[str, ...] = NEIGHBOURS


class ModeRow(msgspec.Struct, frozen=True):
    """The cost of one mode, measured with notifications in the form in which they arrive in this
    mode."""

    shape: str
    mode: str
    microseconds: float  # per notification
    bytes_out: float  # bytes per notification, to all neighbours together
    ratio: float  # the time divided by the time with labels; below 1, the mode is faster


def shapes() -> dict[str, GraphShape]:
    def tree(depth: int, degree: int) -> dict[int, list[int]]:
        count = sum(degree**level for level in range(depth))
        return {
            node: [(node - 2) // degree + 1] if node > 1 else [] for node in range(1, count + 1)
        }

    return {
        "flat": GraphShape({node: [] for node in range(1, 101)}, 0.3),
        "shallow": GraphShape(tree(3, 8), 0.3),
        "deep": GraphShape({node: [node - 1] if node > 1 else [] for node in range(1, 201)}, 0.3),
        "one alone": GraphShape(tree(3, 8), 1.0, ("a",)),
    }


def measure_modes(
    rounds: int = 7, seed: int = 1, note: Callable[[str], None] = lambda _: None
) -> list[ModeRow]:
    """Measure each shape in each mode, in turn; times are medians."""
    costs = measure_costs()
    rows: list[ModeRow] = []
    for name, shape in shapes().items():
        note(name)
        runs = {mode: _Run(shape, msgspec.structs.replace(costs, mode=mode), seed) for mode in Mode}
        times: dict[Mode, list[float]] = {mode: [] for mode in Mode}
        for _ in range(rounds):
            for mode, run in runs.items():
                times[mode].append(run.time())
        base = statistics.median(times[Mode.LABELS])
        for mode, run in runs.items():
            took = statistics.median(times[mode])
            rows.append(ModeRow(name, mode.value, took * 1e6 / FRAMES, run.bytes_out / FRAMES,
                                took / base))  # fmt: skip
    return rows


class _Run:
    """A router in one mode, and frames in the form in which a root sends them in that mode."""

    def __init__(self, shape: GraphShape, forwarding: Forwarding, seed: int) -> None:
        chance = random.Random(seed)
        self.router = Router("router", "root")
        self.router.forwarding = forwarding
        for node, parents in shape.parents.items():
            self.router.graph.insert(node, parents, ())
            for neighbour in shape.neighbours:
                if chance.random() < shape.wanted:
                    self.router.graph.subscribe(node, neighbour)
        self.router.note_graph_change()
        above = Router("root", "")
        for node, parents in shape.parents.items():
            above.graph.insert(node, parents, ())
            above.graph.subscribe(node, "router")
        given = list(_frames(chance, above, shape, forwarding))
        self.buffer = b"".join(given)
        self.starts, end = frames.split(self.buffer)
        self.ends = [*self.starts[1:], end]
        self.forwarder = Forwarder(self.router)
        self.bytes_out = 0
        for pieces, _ in self.forwarder.forward(self.buffer, self.starts, self.ends).values():
            self.bytes_out += sum(map(len, pieces))

    def time(self) -> float:
        begun = time.perf_counter()
        for pieces, _ in self.forwarder.forward(self.buffer, self.starts, self.ends).values():
            b"".join(pieces)
        return time.perf_counter() - begun


def _frames(
    chance: random.Random, above: Downstream, shape: GraphShape, forwarding: Forwarding
) -> Iterator[bytes]:
    nodes = list(shape.parents)
    covering = {parent for parents in shape.parents.values() for parent in parents}
    leaves = [node for node in nodes if node not in covering] or nodes
    payload = bytes(PAYLOAD)
    for serial in range(1, FRAMES + 1):
        marks = sorted(chance.sample(leaves, min(len(leaves), chance.randrange(1, 4))))
        labels = tuple(first_label(above.graph, node, forwarding) for node in marks)
        way = ways_of(above.graph, labels, forwarding)["router"]
        given = tuple(m.Mark(node, serial, label)
                      for node, label in zip(marks, way.labels, strict=True))  # fmt: skip
        yield frames.encode(m.Notification(1, serial, given, payload, "publisher", serial))
