"""Positions of the nodes of a graph in a picture: nodes lie in layers, and each node lies below all
nodes that cover it.

    layer      the length of the longest path from a root, so that every edge leads down
    order      nodes of a layer are sorted by the mean position of their neighbours, alternately
               those above and those below; the order with the fewest crossings wins
    x          as close to the mean of the neighbours as order and sizes allow
    rows       a layer that is too wide is folded: its nodes alternate between several rows

An edge that passes through several layers has a bend in each of them, which is laid out like a
narrow node. If there would be very many bends, long edges are drawn straight. Nodes without edges
get a block of their own at the bottom.

The cost of a sweep is linear in the numbers of nodes, edges and bends; there are a few dozen
sweeps.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

SWEEPS = 16
PASSES = 12
MOST_BENDS = 4000
SHAPE = 1.5  # the approximate width of a picture, divided by its height
MANY_LAYERS = 60  # if there are more layers than this, the gaps between layers shrink
WIDEST_GAP = 2.0  # the widest gap between layers, in units of the smallest gap


class Style(NamedTuple):
    """The sizes of a node, of the space between nodes, and of a bend."""

    width: float
    height: float
    space: float
    gap: float
    """The smallest gap between layers."""
    bend: float
    folds: int
    """The most rows per layer. With two rows, edges to the second row pass between the nodes of the
    first row."""


class Layout(NamedTuple):
    """The centres of nodes, and the points that edges pass through."""

    layers: list[int]
    alone: list[bool]
    x: list[float]
    y: list[float]
    bands: list[tuple[float, float]]
    """The top and bottom of each layer, and of the block of nodes without edges if there is one."""
    edges: list[tuple[int, int, list[tuple[float, float]]]]
    """For each edge, both of its nodes, and the points where it leaves or enters a layer in
    between."""
    width: float
    height: float


def layers_of(children: Sequence[Sequence[int]]) -> list[int]:
    """For each node, the length of the longest path from a root to it."""
    waiting = [0] * len(children)
    for below in children:
        for child in below:
            waiting[child] += 1
    layers = [0] * len(children)
    ready = [node for node, count in enumerate(waiting) if not count]
    while ready:
        node = ready.pop()
        for child in children[node]:
            layers[child] = max(layers[child], layers[node] + 1)
            waiting[child] -= 1
            if not waiting[child]:
                ready.append(child)
    return layers


def lay_out(children: Sequence[Sequence[int]], style: Style) -> Layout:
    """Lay out all nodes, given the children of each."""
    layers = layers_of(children)
    has_parent = {child for below in children for child in below}
    alone = [not below and n not in has_parent for n, below in enumerate(children)]
    net = _Net(children, layers, alone)
    net.order()
    singles = [node for node, single in enumerate(alone) if single]
    if len(net.rows) > MANY_LAYERS:
        style = style._replace(gap=max(style.space, style.gap * MANY_LAYERS / len(net.rows)))
    width = _width_for([net.counts(row) for row in net.rows], len(singles), style)
    folded = [net.folds(row, width, style) for row in net.rows]
    x = net.place(width, folded, style)
    left = min((x[n] - style.width / 2 for n in range(len(children)) if not alone[n]), default=0.0)
    x = [one - left for one in x]
    width = max([width, *(x[n] + style.width / 2 for n in range(len(x)))])
    y = [0.0] * len(children)
    bands: list[tuple[float, float]] = []
    top = 0.0
    step = style.height + style.space
    gap = _gap_for(folded, -(-len(singles) * (style.width + style.space) // width), width, style)
    for row, folds in zip(net.rows, folded, strict=True):
        real = [node for node in row if node < len(children)]
        for at, node in enumerate(real):
            y[node] = top + style.height / 2 + step * (at % folds)
        bottom = top + step * min(folds, max(1, len(real))) - style.space
        bands.append((top, bottom))
        top = bottom + gap
    if singles:
        top = bands[-1][1] + gap / 2 if bands else 0.0
        across = max(1, int((width + style.space) // (style.width + style.space)))
        for at, node in enumerate(singles):
            x[node] = style.width / 2 + (style.width + style.space) * (at % across)
            y[node] = top + style.height / 2 + step * (at // across)
        bands.append((top, y[singles[-1]] + style.height / 2))
    edges = []
    for a, b, bends in net.edges:
        way = [(x[bend], edge) for bend in bends for edge in bands[net.layers[bend]]]
        edges.append((a, b, [(x[a], bands[layers[a]][1]), *way, (x[b], bands[layers[b]][0])]))
    count = len(children)
    height = bands[-1][1] if bands else 0.0
    return Layout(layers, alone, x[:count], y, bands, edges, width, height)


def crossings(upper: Sequence[int], ends: Sequence[Sequence[int]]) -> int:
    """How often edges cross between two layers. `ends[node]` lists where the edges of an upper node
    end in the lower layer."""
    seen = [end for node in upper for end in sorted(ends[node])]
    tree = [0] * (max(seen, default=0) + 2)
    count = 0
    for done, end in enumerate(seen):
        at, up_to = end + 1, 0
        while at:
            up_to += tree[at]
            at &= at - 1
        count += done - up_to
        at = end + 1
        while at < len(tree):
            tree[at] += 1
            at += at & -at
    return count


class _Net:
    """The nodes that have edges, and the bends of long edges, layer by layer."""

    def __init__(
        self, children: Sequence[Sequence[int]], layers: list[int], alone: list[bool]
    ) -> None:
        self.layers = list(layers)
        self.edges: list[tuple[int, int, list[int]]] = []
        bends = sum(layers[b] - layers[a] - 1 for a, below in enumerate(children) for b in below)
        bent = bends <= MOST_BENDS
        self._below: list[list[int]] = [[] for _ in children]
        self._above: list[list[int]] = [[] for _ in children]
        for a, below in enumerate(children):
            for b in below:
                way = [a]
                for layer in range(layers[a] + 1, layers[b]) if bent else ():
                    way.append(len(self.layers))
                    self.layers.append(layer)
                    self._below.append([])
                    self._above.append([])
                self.edges.append((a, b, way[1:]))
                for one, other in pairwise([*way, b]):
                    self._below[one].append(other)
                    self._above[other].append(one)
        self._count = len(children)
        depth = max((self.layers[n] for n in range(self._count) if not alone[n]), default=-1)
        self.rows: list[list[int]] = [[] for _ in range(depth + 1)]
        for node in self._first_order(alone):
            self.rows[self.layers[node]].append(node)

    def _first_order(self, alone: list[bool]) -> list[int]:
        """Nodes in the order of a depth-first walk, which keeps connected nodes together."""
        roots = [n for n in range(self._count) if not self._above[n] and not alone[n]]
        seen: dict[int, None] = {}
        for root in roots:
            stack = [root]
            while stack:
                node = stack.pop()
                if node not in seen:
                    seen[node] = None
                    # follow edges up as well, so that connected nodes stay together
                    stack += reversed(self._above[node])
                    stack += reversed(self._below[node])
        return list(seen)

    def order(self) -> None:
        """Sort each layer so that few edges cross."""
        best, fewest = [list(row) for row in self.rows], self._crossings()
        for sweep in range(SWEEPS):
            if not fewest:
                break
            down = sweep % 2 == 0
            for row in self.rows[1:] if down else reversed(self.rows[:-1]):
                self._sort(row, self._above if down else self._below)
            found = self._crossings()
            if found < fewest:
                best, fewest = [list(row) for row in self.rows], found
        self.rows = best

    def _sort(self, row: list[int], nearby: list[list[int]]) -> None:
        """Sort the nodes of a layer by the mean position of their neighbours; a node without
        neighbours stays where it is."""
        middles = []
        for at, node in enumerate(row):
            near = [self._share[other] for other in nearby[node]]
            middles.append((sum(near) / len(near) if near else at / max(1, len(row) - 1), at))
        row[:] = [row[at] for _, at in sorted(middles)]
        self._measure(row)

    def _measure(self, row: list[int]) -> None:
        last = max(1, len(row) - 1)
        for at, node in enumerate(row):
            self._share[node] = at / last
            self._at[node] = at

    def _crossings(self) -> int:
        # each node's position in its layer, from 0 (left) to 1 (right)
        self._share = [0.0] * len(self.layers)
        self._at = [0] * len(self.layers)
        for row in self.rows:
            self._measure(row)
        total = 0
        for upper, lower in pairwise(self.rows):
            here = set(lower)
            ends = {n: [self._at[b] for b in self._below[n] if b in here] for n in upper}
            total += crossings(range(len(upper)), [ends[node] for node in upper])
        return total

    def counts(self, row: list[int]) -> tuple[int, int]:
        """How many nodes a layer has, and how many bends."""
        bends = sum(node >= self._count for node in row)
        return len(row) - bends, bends

    def folds(self, row: list[int], width: float, style: Style) -> int:
        """The number of rows that a layer is folded into."""
        nodes, bends = self.counts(row)
        room = max(style.width, width - bends * style.bend)
        taken = nodes * (style.width + style.space)
        return min(style.folds, max(1, -int(-taken // (room + style.space))))

    def place(self, width: float, folded: list[int], style: Style) -> list[float]:
        """The x coordinates of all nodes and bends."""
        x = [0.0] * len(self.layers)
        # for each layer, the smallest distances of its nodes from its first node
        steps: list[list[float]] = []
        for row, folds in zip(self.rows, folded, strict=True):
            at, found = 0.0, []
            step = (style.width + style.space) / folds
            for n, node in enumerate(row):
                if n:
                    bends = (row[n - 1] >= self._count) + (node >= self._count)
                    beside = (style.width + max(style.space, style.bend)) / 2
                    at += (step, beside, style.bend)[bends]
                found.append(at)
            steps.append(found)
            shift = (width - (found[-1] if found else 0.0)) / 2
            for node, distance in zip(row, found, strict=True):
                x[node] = shift + distance
        for turn in range(PASSES):
            up = turn % 2 == 1
            order = range(len(self.rows))
            for layer in reversed(order) if up else order:
                row = self.rows[layer]
                wanted = [self._find_middle(node, x, up) for node in row]
                for node, place in zip(row, _spread(wanted, steps[layer], width), strict=True):
                    x[node] = place
        return x

    def _find_middle(self, node: int, x: list[float], up: bool) -> float:
        """The mean x coordinate of the neighbours on one side, or, if there are none on that side,
        of the neighbours on the other side."""
        near = self._below[node] if up else self._above[node]
        near = near or self._above[node] or self._below[node]
        return sum(x[other] for other in near) / len(near)


def _spread(wanted: list[float], steps: list[float], width: float) -> list[float]:
    """Of all positions that keep the order and the distances, those closest to the wanted ones, by
    least squares. Nodes that come too close to each other form a group, which is placed at the mean
    of the wanted positions of its members."""
    groups: list[tuple[float, int]] = []  # (sum of the wanted starts, number of members)
    for want, step in zip(wanted, steps, strict=True):
        total, members = want - step, 1
        while groups and groups[-1][0] / groups[-1][1] >= total / members:
            before, others = groups.pop()
            total, members = total + before, members + others
        groups.append((total, members))
    starts = [total / members for total, members in groups for _ in range(members)]
    # stay within the picture if there is room
    most = max(0.0, width - (steps[-1] if steps else 0.0))
    return [min(max(start, 0.0), most) + step for start, step in zip(starts, steps, strict=True)]


def _width_for(rows: list[tuple[int, int]], singles: int, style: Style) -> float:
    """A width that makes the picture about SHAPE times as wide as high. For each layer, `rows`
    contains the number of nodes and the number of bends."""
    across = style.width + style.space
    least = [-(-nodes // style.folds) * across + bends * style.bend for nodes, bends in rows]
    width = max([across, *least])
    widest = max([singles * across, *(n * across + bends * style.bend for n, bends in rows)])
    while width < widest:
        folds = [-int(-n * across // (width - bends * style.bend)) for n, bends in rows]
        folds.append(-int(-singles * across // width))
        if width >= SHAPE * _height(folds, style.gap, style):
            break
        width += across
    return width


def _gap_for(folded: list[int], singles: float, width: float, style: Style) -> float:
    """The gap between layers, within limits, at which the picture gets the wanted shape."""
    free = width / SHAPE - _height([*folded, int(singles)], 0.0, style)
    return min(max(style.gap, free / max(1, len(folded) - 1)), WIDEST_GAP * style.gap)


def _height(folds: list[int], gap: float, style: Style) -> float:
    return sum(folds) * (style.height + style.space) + max(0, len(folds) - 1) * gap
