"""The positions of nodes in a picture: edges lead down, nothing overlaps, layers are depths."""

from __future__ import annotations

import itertools
import random
from functools import cache

import pytest
from tests.repeats import draws

from tidings.graph import picture_layout as module
from tidings.graph.picture_layout import Style, crossings, lay_out, layers_of

STYLES = [Style(100, 40, 12, 50, 8, 2), Style(11, 11, 3, 36, 4, 40)]


def random_dag(rng: random.Random, most: int = 60) -> list[list[int]]:
    """Children of each node, in no particular order of numbers."""
    count = rng.randint(0, most)
    numbers = rng.sample(range(count), count)
    density = rng.choice([0.5, 1, 2, 4]) / max(1, count)
    children: list[list[int]] = [[] for _ in range(count)]
    for a, b in itertools.combinations(range(count), 2):
        if rng.random() < density:
            children[numbers[a]].append(numbers[b])
    return children


def longest_path_to(children: list[list[int]]) -> list[int]:
    parents = [[a for a, below in enumerate(children) if b in below] for b in range(len(children))]

    @cache
    def depth(node: int) -> int:
        return max((depth(parent) + 1 for parent in parents[node]), default=0)

    return [depth(node) for node in range(len(children))]


def check(children: list[list[int]], style: Style) -> None:
    found = lay_out(children, style)
    count = len(children)
    linked = {n for n in range(count) if children[n]} | {b for below in children for b in below}
    assert found.layers == layers_of(children)
    assert [n for n in range(count) if not found.alone[n]] == sorted(linked)
    for node in range(count):
        # each layer is a band of its own, and they follow each other downwards
        top, bottom = found.bands[-1 if found.alone[node] else found.layers[node]]
        assert top - 0.01 <= found.y[node] - style.height / 2
        assert found.y[node] + style.height / 2 <= bottom + 0.01
        assert style.width / 2 - 0.01 <= found.x[node] <= found.width - style.width / 2 + 0.01
    assert all(high[1] < low[0] for high, low in itertools.pairwise(found.bands))
    assert {(a, b) for a, b, _ in found.edges} == {
        (a, b) for a, below in enumerate(children) for b in below
    }
    for a, b, points in found.edges:
        ys = [found.y[a], *(y for _, y in points), found.y[b]]
        assert found.y[a] < found.y[b]
        assert ys == sorted(ys)
    for a, b in itertools.combinations(range(count), 2):
        apart_x = abs(found.x[a] - found.x[b]) >= style.width + style.space - 0.01
        apart_y = abs(found.y[a] - found.y[b]) >= style.height + style.space - 0.01
        assert apart_x or apart_y, (a, b)


@pytest.mark.parametrize("style", STYLES)
def test_random_graphs(seed: int, style: Style) -> None:
    rng = random.Random(seed)
    for _ in range(40):
        check(random_dag(rng), style)


@pytest.mark.parametrize("style", STYLES)
def test_odd_shapes(style: Style) -> None:
    star = [list(range(1, 200)), *([] for _ in range(199))]
    chain = [[n + 1] if n < 149 else [] for n in range(150)]
    pairs = [[n + 1] if n % 2 == 0 else [] for n in range(200)]
    shapes: list[list[list[int]]] = [[], [[]], [[] for _ in range(150)], [[1], []]]
    for children in (*shapes, star, chain, pairs):
        check(children, style)


def test_layers_are_longest_paths(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(100):
        children = random_dag(rng, 30)
        assert layers_of(children) == longest_path_to(children)
    assert layers_of([[1, 2], [2], []]) == [0, 1, 2]


def test_long_edges_go_straight_where_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    children = [[1, 2, 3], [2], [3], []]
    bent = {(a, b): points for a, b, points in lay_out(children, STYLES[0]).edges}
    assert [len(bent[0, b]) for b in (1, 2, 3)] == [2, 4, 6]
    monkeypatch.setattr(module, "MOST_BENDS", 2)
    straight = lay_out(children, STYLES[0]).edges
    assert [len(points) for _, _, points in straight] == [2] * 5


def test_edges_into_the_second_row_pass_between_nodes_of_the_first(seed: int) -> None:
    rng = random.Random(seed)
    style = STYLES[0]
    for _ in range(20):
        children = random_dag(rng)
        found = lay_out(children, style)
        for node in range(len(children)):
            for other in range(len(children)):
                over = found.layers[node] == found.layers[other] and found.y[other] < found.y[node]
                if over and not found.alone[node] and not found.alone[other]:
                    assert abs(found.x[node] - found.x[other]) > style.width / 2


def test_long_edges_pass_beside_nodes(seed: int) -> None:
    rng = random.Random(seed)
    style, passed = STYLES[0], 0
    for _ in draws(20, lambda: passed):
        children = random_dag(rng)
        found = lay_out(children, style)
        for _, _, points in found.edges:
            for (x, top), (_, bottom) in zip(points[1:-1:2], points[2:-1:2], strict=True):
                near = [n for n in range(len(children)) if top < found.y[n] < bottom]
                assert all(abs(found.x[n] - x) > style.width / 2 for n in near)
                passed += 1
    assert passed


def test_crossings_are_counted(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(100):
        ends = [[rng.randrange(6) for _ in range(rng.randint(0, 3))] for _ in range(5)]
        edges = [(at, end) for at, some in enumerate(ends) for end in some]
        pairs = itertools.combinations(edges, 2)
        crossed = sum((a[0] - b[0]) * (a[1] - b[1]) < 0 for a, b in pairs)
        assert crossings(range(5), ends) == crossed


def crossed(children: list[list[int]]) -> int:
    """Crossings between neighbouring layers, as the picture has them."""
    ways = [points for _, _, points in lay_out(children, STYLES[1]).edges]
    steps = [
        (high, low) for points in ways for high, low in zip(points[::2], points[1::2], strict=True)
    ]
    return sum(
        a[0][1] == b[0][1] and (a[0][0] - b[0][0]) * (a[1][0] - b[1][0]) < -0.01
        for a, b in itertools.combinations(steps, 2)
    )


def test_sweeps_make_crossings_fewer(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    swept = found = 0
    for _ in draws(10, lambda: swept < found):
        children = random_dag(rng, 40)
        after = crossed(children)
        with monkeypatch.context() as without:
            without.setattr(module, "SWEEPS", 0)
            before = crossed(children)
        assert after <= before
        swept, found = swept + after, found + before
    assert swept < found


def test_the_order_takes_crossings_away(seed: int) -> None:
    """Two trees whose numbers are mixed can be drawn without any."""
    rng = random.Random(seed)
    numbers = rng.sample(range(30), 30)
    children: list[list[int]] = [[] for _ in range(30)]
    for at in range(2, 30):
        children[numbers[(at - 2) // 2]].append(numbers[at])
    assert crossed(children) == 0
