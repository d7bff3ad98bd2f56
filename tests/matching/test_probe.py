"""The index for single events: grids of pairs and single entries find what a scan finds."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from tidings import parse
from tidings.matching.segments import probe as module
from tidings.matching.segments.part import Part
from tidings.matching.segments.probe_kernels import Probe
from tidings.matching.segments.segment import Segment
from tidings.matching.segments.segment_builder import build_segment


def texts(rng: random.Random, count: int) -> list[str]:
    """Conjunctions of points, ranges, sets and what is open to one side, on few attributes."""

    def test(name: str) -> str:
        low = rng.randint(-5, 60)
        return rng.choice([
            f"{name} = {low}", f"{name} BETWEEN {low} AND {low + rng.randint(0, 12)}",
            f"{name} > {low}.5", f"{name} IN ({low}, {low + 3}, {low + 9})", f"{name} != {low}",
            f"s{name} = 'v{min(low, 9)}'", f"array_contains(tags, {low % 7})",
        ])  # fmt: skip

    return [
        " AND ".join(test(name) for name in rng.sample("abcd", rng.randint(1, 4)))
        for _ in range(count)
    ]


def events(rng: random.Random, count: int) -> list[dict[str, Any]]:
    def value() -> Any:
        return rng.choice([
            rng.randint(-10, 80), rng.randint(-10, 80), rng.uniform(-5, 70), float("nan"), None,
            2**70, -(2**70), float(rng.randint(0, 60)), "text", True,
        ])  # fmt: skip

    return [
        {
            **{name: value() for name in rng.sample("abcd", 3)},
            **{f"s{name}": f"v{rng.randint(0, 11)}" for name in "abcd"},
            "tags": rng.choice([None, [], [1, 2], [rng.randint(0, 6)], ["x", 3]]),
        }
        for _ in range(count)
    ]


def check(segment: Segment, written: list[str], asked: list[dict[str, Any]]) -> Probe:
    part = Part(segment)
    dead = np.zeros(len(written), np.uint8)
    filters = [parse(text) for text in written]
    for event in asked:
        want = [at for at, one in enumerate(filters) if one.matches(event)]
        assert sorted(part.probe(event, dead).tolist()) == want, event
    return part.index


@pytest.mark.parametrize("least", [0, 0.5, 1e9], ids=["all", "some", "none"])
def test_grids_and_single_entries_find_the_same(
    seed: int, least: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LEAST_VISITS", least)
    rng = random.Random(seed)
    written = texts(rng, 250)
    segment = build_segment((at, parse(text).form) for at, text in enumerate(written))
    index = check(segment, written, events(rng, 150))
    assert (len(index.records) == 0) == (least == 1e9)
    assert len(index.single_low) > 0  # lists, and filters of one test


def test_a_box_that_touches_many_cells_stays_single(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LEAST_VISITS", 0)
    wide = [f"a > {n} AND b > {n}" for n in range(100)]
    narrow = [f"a = {n} AND b = {n}" for n in range(100)]
    written = wide + narrow
    segment = build_segment((at, parse(text).form) for at, text in enumerate(written))
    index = check(segment, written, [{"a": n, "b": 99 - n} for n in range(-1, 101)])
    assert 100 <= len(index.records) <= len(narrow) + 100 * module.MOST_CELLS
    assert 0 < len(index.single_low) < 100


def test_more_codes_than_16_bits_stay_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LEAST_VISITS", 0)
    written = [f"n = {n} AND a = {n % 3} AND b > {n % 5}" for n in range(0, 70_000, 2)]
    segment = build_segment((at, parse(text).form) for at, text in enumerate(written))
    part = Part(segment)
    dead = np.zeros(len(written), np.uint8)
    for n in (0, 1, 2, 3333, 40_000, 69_998, 70_001):
        want = [n // 2] if n % 2 == 0 and n < 70_000 else []
        assert part.probe({"n": n, "a": n % 3, "b": 9}, dead).tolist() == want
        assert part.probe({"n": n, "a": n % 3 + 1, "b": 9}, dead).tolist() == []


def test_a_full_output_is_tried_again_with_more_room() -> None:
    written = [f"a BETWEEN 0 AND {n}" for n in range(3000)]
    segment = build_segment((at, parse(text).form) for at, text in enumerate(written))
    part = Part(segment)
    assert len(part.probe({"a": 0}, np.zeros(3000, np.uint8))) == 3000
