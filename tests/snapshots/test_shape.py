"""The shape of a graph: depths are those of the longest path, and cost no more in deep graphs."""

from __future__ import annotations

import random
from functools import lru_cache
from itertools import pairwise

import pytest
from tests.repeats import runs
from tests.snapshots.test_snapshot import many_filters

from tidings.matching.tallies import tag_kernels
from tidings.snapshots import Snapshot
from tidings.snapshots.shape import Shape


@pytest.mark.parametrize("run", runs(1, 3))
def test_depths_are_those_of_the_longest_paths(seed: int, run: int) -> None:
    filters, _ = many_filters(random.Random(f"{seed} shape {run}"), 150)
    snapshot = Snapshot.build(filters)
    found = Shape(snapshot)

    @lru_cache(None)
    def depth(node: int) -> int:
        return 1 + max((depth(parent) for parent in snapshot.parents(node)), default=0)

    assert found.depths.tolist() == [depth(node) for node in snapshot.numbers.tolist()]
    path = found.deepest()
    assert len(path) == max(found.depths)
    for parent, node in pairwise(path):
        assert parent in snapshot.parents(node)


def test_a_deep_graph_is_gone_through_once(monkeypatch: pytest.MonkeyPatch) -> None:
    edges: list[int] = []
    sink = tag_kernels.sink
    monkeypatch.setattr(tag_kernels, "sink", lambda *args: edges.append(sink(*args)))
    snapshot = Snapshot.build({at: f"x > {at}" for at in range(500)})
    found = Shape(snapshot)
    assert found.depths.tolist() == list(range(1, 501))
    assert found.deepest() == snapshot.numbers.tolist()
    assert edges == [499]


def test_no_nodes() -> None:
    assert Shape(Snapshot.build({})).deepest() == []
