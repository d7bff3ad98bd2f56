"""Covering in bulk against its definition: all pairs asked, closed, reduced."""

from __future__ import annotations

import random
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from tests.filters.strategies import Writer, schema
from tests.graph.test_content_graph import random_filter
from tests.repeats import runs

from tidings import Filter, FilterError, parse
from tidings.filters.canonical.covering import covers
from tidings.filters.canonical.form import Form
from tidings.matching.covering import cover_join, cover_kernels, coverage, undecided
from tidings.matching.covering.coverage import Coverage, cover
from tidings.matching.covering.hull_gathering import gather


def distinct(filters: list[Filter]) -> list[Filter]:
    return list({one.key: one for one in filters}.values())


def by_definition(filters: list[Filter]) -> tuple[list[int], set[tuple[int, int]]]:
    """The first of the equals of each filter, and the edges between those."""
    above = np.array([[a.covers(b) for b in filters] for a in filters], bool)
    for middle in range(len(filters)):
        above |= above[:, [middle]] & above[[middle], :]
    equal = above & above.T
    first = [int(np.argmax(row)) for row in equal]
    real = above & ~equal
    reduced = real & ~(real.astype(np.float32) @ real.astype(np.float32) > 0)
    edges = {(first[a], first[b]) for a, b in np.argwhere(reduced).tolist()}
    return first, edges


def assert_right(filters: list[Filter], threads: int | None = None) -> Coverage:
    filters = distinct(filters)
    found = cover([one.form for one in filters], threads=threads)
    first, edges = by_definition(filters)
    assert found.first.tolist() == first
    pairs = list(zip(found.above.tolist(), found.below.tolist(), strict=True))
    assert len(pairs) == len(set(pairs))
    assert set(pairs) == edges
    return found


def simple(rng: random.Random, count: int) -> list[Filter]:
    return [random_filter(rng) for _ in range(count)]


def of_every_kind(rng: random.Random, count: int) -> list[Filter]:
    writer = Writer(rng, schema(rng), spark=False)
    filters: list[Filter] = []
    while len(filters) < count:
        try:
            filters.append(parse(writer.filter(depth=2)))
        except FilterError:
            continue
    return filters


@pytest.mark.parametrize("run", runs(1, 4))
def test_simple_filters(seed: int, run: int) -> None:
    assert_right(simple(random.Random(f"{seed}/{run}"), 150))


@pytest.mark.parametrize("run", runs(2, 4))
def test_filters_of_every_kind(seed: int, run: int) -> None:
    assert_right(of_every_kind(random.Random(f"{seed}/{run}"), 80))


@pytest.mark.parametrize("threads", [1, 2, pytest.param(4, marks=pytest.mark.slow)])
def test_small_blocks_that_run_full(
    seed: int, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (coverage, undecided):
        monkeypatch.setattr(module, "ROOM", 1)
    monkeypatch.setattr(coverage, "BLOCK", 16)
    monkeypatch.setattr(coverage, "SMALLEST", 4)
    full: list[bool] = []
    pairs = cover_join.CoverJoin.pairs

    def watched(join: cover_join.CoverJoin, *args: Any) -> cover_join.HullPairs | None:
        found = pairs(join, *args)
        full.append(found is None)
        return found

    monkeypatch.setattr(cover_join.CoverJoin, "pairs", watched)
    rng = random.Random(f"{seed}/{threads}")
    chains = [parse(f"{name} > {n}") for name in "ab" for n in range(60)]
    assert_right(simple(rng, 60) + chains, threads)
    assert any(full)
    assert not all(full)


def test_codes_that_do_not_fit(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Codes shifted to almost nothing: the exact look decides."""
    monkeypatch.setattr(cover_join, "BITS", 1)
    rng = random.Random(seed)
    assert_right(simple(rng, 120))
    assert_right(of_every_kind(rng, 50))


def test_computed_terms() -> None:
    """What is computed from a point is covered by points, and by nothing else."""
    texts = [
        "lower(name) = 'bo'", "name = 'Bo'", "name IN ('Bo', 'BO')", "name IN ('Bo', 'Al')",
        "lower(name) = 'bo' AND x = 1", "name = 'Bo' AND x = 1", "name > 'A' AND x = 1", "x = 1",
        "lower(name) IN ('bo', 'al') AND x = 1", "lower(name) != 'bo' AND x = 1",
        "(lower(name) = 'bo' OR name = 'Al') AND x = 1", "a < b AND x = 1", "a < b",
        "a = 1 AND b = 2 AND x = 1", "a = 1 AND b IN (0, 2) AND x = 1", "x = 1 AND a < b AND c = 1",
    ]  # fmt: skip
    assert_right([parse(text) for text in texts])


def test_sets_of_several_intervals() -> None:
    texts = [f"x != {n}" for n in range(6)]
    texts += [f"x IN ({n}, {n + 2}, {n + 3})" for n in range(6)]
    texts += [f"x IN ({n}, {n + 3})" for n in range(6)]
    texts += ["x IS NOT NULL", "x IS NULL", "x NOT IN (1, 2)", "x > 3 OR x < 1", "x = 5", "x <> 9"]
    found = assert_right([parse(text) for text in texts])
    assert found.pairs > 0


def test_equal_though_written_differently() -> None:
    """The same shape cut into boxes in two ways, below, beside and above others."""
    texts = [
        "(x = 1 AND y < 5) OR (x IN (1, 2) AND y BETWEEN 5 AND 9)",
        "(x = 1 AND y <= 9) OR (x = 2 AND y BETWEEN 5 AND 9)",
        "x IN (1, 2) AND y <= 9",
        "x = 1 AND y = 3",
        "x = 2 AND y = 7",
        "(x = 1 AND y <= 9) OR (x = 2 AND y BETWEEN 6 AND 9)",
    ]
    filters = [parse(text) for text in texts]
    rng = random.Random(1)
    for _ in range(10):
        rng.shuffle(filters)
        assert len(set(assert_right(filters).first.tolist())) == len(filters) - 1


def test_wide_filters_that_are_equal() -> None:
    """Trees, for which the order of their parts and a part that is not needed make no difference
    to what they cover."""
    pairs = [f"(a{i} = 1 OR b{i} = 1)" for i in range(8)]
    more = [*pairs, "(a0 = 1 OR b0 = 1 OR c = 1)"]
    texts = [" AND ".join(part) for part in (pairs, more, pairs[:-1], more[1:])]
    texts += [" AND ".join([*part, "x = 1"]) for part in (pairs, more, pairs[:-1], more[1:])]
    assert_right([parse(text) for text in [*texts, "x = 1", "x > 0"]])


@pytest.mark.parametrize("kept", [0, 5, 1 << 20])
def test_many_filters_of_one_hull(seed: int, kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Chains, equals and strangers, in any order, with one that is certain and without."""
    monkeypatch.setattr(undecided, "KEPT", kept)
    monkeypatch.setattr(undecided, "ROOM", 100)
    rng = random.Random(f"{seed}/{kept}")
    texts = [f"x = 1 AND length(s) > {n}" for n in range(20)]
    texts += [f"x = 1 AND (y > {n} OR z > {n})" for n in range(15)]
    texts += [f"x = 1 AND (y > {n} OR z > {n} OR w = {n % 2})" for n in range(5)]
    texts += [
        "x = 1 AND (y < 5 AND z = 1 OR y BETWEEN 5 AND 9 AND z IN (1, 2))",
        "x = 1 AND (z = 1 AND y <= 9 OR z = 2 AND y BETWEEN 5 AND 9)",
        "x = 1 AND (z = 1 AND y <= 9 OR z = 2 AND y BETWEEN 6 AND 9)",
        "lower(s) = 'bo' OR x = 1", "lower(s) = 'bo' OR x > 0", "lower(s) = 'bo'", "s = 'Bo'",
    ]  # fmt: skip
    for more in ([], ["x = 1"], ["x = 1", "true", "false"]):
        chosen = texts + more
        rng.shuffle(chosen)
        assert_right([parse(text) for text in chosen])


def test_groups_of_one_hull() -> None:
    """A certain one covers all that lead to it, and so is equal to them, however far."""
    certain = np.array([1, 0, 0, 0, 0])
    groups = [sorted(g) for g in undecided._groups([(1, 0), (2, 1), (3, 2), (1, 4)], certain)]
    assert groups == [[4], [0, 1, 2, 3]]
    groups = [sorted(g) for g in undecided._groups([(1, 2), (2, 3), (3, 1), (3, 4)], certain * 0)]
    assert groups == [[4], [1, 2, 3]]


def test_very_many_attributes() -> None:
    """Each filter has attributes of its own: nothing here may be a table of filters by names."""
    texts = [f"k{n} = 1 AND m{n % 700} > {n}" for n in range(3000)] + ["m5 > 3", "k7 = 1"]
    found = cover([parse(text).form for text in texts])
    wanted = {(3000, n) for n in range(5, 3000, 700)} | {(3001, 7)}
    assert set(zip(found.above.tolist(), found.below.tolist(), strict=True)) == wanted
    assert found.candidates < 10_000


def test_a_long_chain_is_not_cubic() -> None:
    """Half a million coverings, and one edge for each filter."""
    found = cover([parse(f"x > {n}").form for n in range(1000)])
    assert found.pairs == 1000 * 999 // 2
    assert found.above.tolist() == list(range(999))
    assert found.below.tolist() == list(range(1, 1000))


def test_progress_counts_every_form() -> None:
    told: list[int] = []
    forms = [parse(text).form for text in ("x > 1", "x > 2", "false", "true", "y = 1 OR x = 3")]
    cover(forms, told.append)
    assert sum(told) == len(forms)


def test_hulls_hold_what_forms_say() -> None:
    forms = [parse(text).form for text in ("x IN (1, 3) AND b < 2", "lower(s) = 'a'", "true")]
    hulls = gather(forms).hulls
    assert hulls.hull_count == 3
    assert hulls.attributes == 2
    assert np.diff(hulls.starts).tolist() == [2, 1, 0]
    assert (hulls.computed - hulls.starts[:-1]).tolist() == [2, 0, 0]
    assert np.diff(hulls.spans).tolist() == [1, 2, 1]
    turned = hulls.take(np.array([2, 0, 1]))
    assert np.diff(turned.starts).tolist() == [0, 2, 1]
    assert turned.low.tolist() == hulls.low.tolist()
    assert turned.sizes()[0].tolist() == [0, 2, 0]


def test_boxes_that_are_left_on_different_sides(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where each box that is near leaves the other one on a column of its own, nobody is asked."""
    asked: list[tuple[Form, Form]] = []

    def watched(outer: Form, inner: Form, *budget: Any) -> bool:
        asked.append((outer, inner))
        return covers(outer, inner, *budget)

    monkeypatch.setattr(undecided, "covers_among", watched)
    texts = [f"x{n} = 1 OR y{n} = 2" for n in range(30)]
    texts += [" OR ".join(f"z{m} = {n}" for m in range(20)) for n in range(5)]
    texts += [f"lower(n{n}) = 'a'" for n in range(30)]
    texts += [f"lower(n{n}) = 'a' OR x{n} > 0 OR y{n} > 0" for n in range(30)]
    found = assert_right([parse(text) for text in texts])
    assert found.pairs == 60
    assert not asked
    texts += ["n3 = 'A' AND x3 = 1", "n3 = 'A' OR n3 = 'b' AND x3 = 2"]
    assert_right([parse(text) for text in texts])
    assert asked


def test_boxes_that_cover_only_together() -> None:
    """Two boxes that leave another on the same column may yet cover it."""
    texts = ["x < 5 AND y = 1 OR x >= 3 AND z = 1", "x BETWEEN 1 AND 9 AND y = 1 AND z = 1"]
    texts += ["x < 5 AND y = 1 OR x > 5 AND z = 1", "x < 5 OR y = 1 OR x > 7 OR z > 0"]
    assert assert_right([parse(text) for text in texts]).pairs > 0


def test_more_columns_than_a_matrix_may_have() -> None:
    """Runs of entries that share a matrix end early; the next ones find the rest."""
    assert cover_kernels.MOST_COLUMNS < 600
    texts = [f"sku = {n} AND p{n % 600} > {n % 7}" for n in range(1800)]
    texts += [f"sku < 900 AND p{n} > {n % 5}" for n in range(600)]
    found = cover([parse(text).form for text in texts])
    wanted = {
        (1800 + n % 600, n)
        for n in range(900)
        if (n % 600) % 5 <= n % 7  # p > a holds p > b
    }
    assert set(zip(found.above.tolist(), found.below.tolist(), strict=True)) == wanted


MEASURE = """
import resource, sys
from tidings import parse
from tidings.matching.covering.coverage import cover

def peak():
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit

cover([parse(text).form for text in ("x > 1", "x = 1 OR y = 2", "lower(n) = 'a' AND x = 1")])
forms = [parse({text}).form for n in range({count})]
before = peak()
cover(forms, threads=1)
print(peak() - before)
"""


@pytest.mark.parametrize(
    ("text", "count", "most"),
    [
        ("f'sku = {n} AND p{n % 4000} > 1'", 20_000, 100),  # 320 MB for all columns at once
        pytest.param(  # 12.5 million coverings
            "f'x > {n} AND y = 1 OR x > {n} AND z = 1'", 5000, 400, marks=pytest.mark.slow
        ),
        pytest.param(  # 8 million in one hull
            "f'x = 1 AND length(s) > {n * 7 % 4001}'", 4000, 300, marks=pytest.mark.slow
        ),
    ],
)
def test_memory(text: str, count: int, most: float) -> None:
    """MB that the work of covering takes beyond the forms."""
    code = MEASURE.format(text=text, count=count)
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert float(answer.stdout) < most


def test_places_are_sorted_by_their_values(seed: int) -> None:
    chance = np.random.default_rng(seed)
    for size in (0, 1, 2, 3, 5, 17, 300):
        values = chance.integers(0, 50, size + 4)
        places = np.arange(size + 4, dtype=np.uint32)
        cover_kernels.sort_places(places, 2, size + 2, values)
        assert places[:2].tolist() == [0, 1]
        assert places[size + 2 :].tolist() == [size + 2, size + 3]
        inside = places[2 : size + 2]
        assert sorted(inside.tolist()) == [*range(2, size + 2)]
        assert values[inside].tolist() == sorted(values[2 : size + 2].tolist())
