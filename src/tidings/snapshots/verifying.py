"""Check a snapshot against its filters: coverings are computed again for a sample of nodes.

The key of each node in the sample must be the key of its filter. Each parent must cover the node;
if the node covers the parent too, the parent must have the higher number. The node is also compared
with a few other nodes: with siblings first, then with nodes chosen at random. If such a node covers
the node in the sample, it must lie above that node, unless the two cover each other and the node in
the sample has the higher number.
"""

from __future__ import annotations

import random

import msgspec

from tidings.filters import Filter
from tidings.filters.canonical import covers_among
from tidings.snapshots.shape import Shape
from tidings.snapshots.snapshot import Snapshot

OTHERS = 8  # each node of the sample is compared with this many nodes besides its parents


class Verification(msgspec.Struct, frozen=True):
    """How much was checked, and one sentence for each of the first problems."""

    nodes: int
    edges: int
    pairs: int  # pairs of nodes without an edge between them
    problems: list[str]


def verify_nodes(
    snapshot: Snapshot, sample: int = 200, seed: int = 1, most: int = 10
) -> Verification:
    """Check a sample of nodes, or all of them if there are no more than `sample`."""
    draw = random.Random(seed)
    shape = Shape(snapshot)
    count, keys = len(shape.numbers), snapshot.keys
    places = range(count) if count <= sample else draw.sample(range(count), sample)
    filters: dict[int, Filter] = {}

    def filter_at(place: int) -> Filter:
        if place not in filters:
            filters[place] = snapshot.matcher.filter(place)
        return filters[place]

    problems: list[str] = []
    edges = pairs = 0
    starts, parents = snapshot.view.parent_starts, snapshot.view.parents
    for place in places:
        number, mine = int(shape.numbers[place]), filter_at(place)
        if mine.key != keys[place]:
            problems.append(f"the key of node {number} is not the key of its filter {mine.sql()}")
        above = parents[starts[place] : starts[place + 1]].tolist()
        for parent in above:
            edges += 1
            name = int(shape.numbers[parent])
            if not covers_among(filter_at(parent).form, mine.form):
                problems.append(f"node {name} is above node {number}, but does not cover it")
            elif name < number and covers_among(mine.form, filter_at(parent).form):
                problems.append(
                    f"nodes {name} and {number} cover each other, expected node {number} above"
                )
        for other in _others(shape, place, above, draw):
            pairs += 1
            name = int(shape.numbers[other])
            covers = covers_among(filter_at(other).form, mine.form)
            if covers and name < number:
                covers = not covers_among(mine.form, filter_at(other).form)
            if covers and not _is_above(starts, parents, other, place):
                problems.append(f"node {name} covers node {number}, but is not above it")
        if len(problems) >= most:
            break
    return Verification(len(places), edges, pairs, problems[:most])


def _others(shape: Shape, place: int, above: list[int], draw: random.Random) -> list[int]:
    near: list[int] = []
    for parent in above[:4]:
        near += shape.children(parent)[:OTHERS].tolist()
    near += draw.choices(range(len(shape.numbers)), k=OTHERS)
    known = {place, *above}
    return [other for other in dict.fromkeys(near) if other not in known][:OTHERS]


def _is_above(starts: object, parents: object, high: int, low: int) -> bool:
    waiting, seen = [low], {low}
    while waiting:
        at = waiting.pop()
        for parent in parents[starts[at] : starts[at + 1]].tolist():  # type: ignore[index]
            if parent == high:
                return True
            if parent not in seen:
                seen.add(parent)
                waiting.append(parent)
    return False
