"""Hulls that are gathered in pieces are those of all at once, and the segment that is made of them
finds what the forms hold."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from tests.filters.strategies import Schema, Writer, event, schema
from tests.matching import tables

from tidings import Filter, FilterError, parse
from tidings.filters.dialects import Context
from tidings.filters.dialects.sql.dialect import parse_term
from tidings.matching import Matcher
from tidings.matching.covering import coverage
from tidings.matching.covering.cover_folder import (
    open_finder,
    pairs_path,
    read_pairs,
    write_finder,
    write_pairs,
)
from tidings.matching.covering.coverage import Block, Finder, cover, cover_hulls
from tidings.matching.covering.hull_gathering import GatheredHulls, HullGathering, gather
from tidings.matching.covering.hull_segment import segment_of_hulls
from tidings.matching.rank_space.ranks import asks_order
from tidings.matching.segments import segment as segments

WIDE = " AND ".join(f"(x{i} = 1 OR y{i} = 2)" for i in range(12))
ODD = ("true", "false", "x = 1 AND x = 2", WIDE, f"({WIDE}) AND size(tags) > 1", "a < b",
       "array_contains(tags, 'a') OR x > 1", "NOT array_contains(tags, 'b')")  # fmt: skip


def drawn(rng: random.Random, count: int) -> tuple[list[Filter], Schema]:
    of = schema(rng)
    writer = Writer(rng, of, spark=False)
    found = [parse(text) for text in ODD]
    while len(found) < count:
        try:
            found.append(parse(writer.filter(depth=2)))
        except FilterError:
            continue
    rng.shuffle(found)
    return found, of


def same(one: GatheredHulls, other: GatheredHulls) -> None:
    for ours, theirs in ((one.hulls, other.hulls), (one.boxes.rows, other.boxes.rows)):
        for name in ours._fields:
            assert np.array_equal(getattr(ours, name), getattr(theirs, name)), name
    assert np.array_equal(one.boxes.starts, other.boxes.starts)
    assert np.array_equal(one.never, other.never)
    assert [(c.text, c.cuts, c.ordered) for c in one.columns] == [
        (c.text, c.cuts, c.ordered) for c in other.columns
    ]


def gathering(filters: Iterable[Filter]) -> HullGathering:
    found = HullGathering()
    for one in filters:
        found.add(one.form)
    return found


def test_pieces_are_put_together(seed: int) -> None:
    rng = random.Random(f"{seed} pieces")
    filters, _ = drawn(rng, 200)
    whole = HullGathering()
    at = 0
    while at < len(filters):
        size = rng.randrange(1, 60)
        packed = gathering(filters[at : at + size]).pack()
        whole.add_packed(packed, lambda text: parse_term(text, Context()))
        at += size
    assert len(whole) == len(filters)
    same(whole.finish(), gather(one.form for one in filters))


def test_any_order_can_be_asked_for(seed: int) -> None:
    rng = random.Random(f"{seed} order")
    filters, _ = drawn(rng, 100)
    order = rng.sample(range(len(filters)), len(filters))
    turned = gathering(filters).finish(np.array(order))
    same(turned, gather(filters[at].form for at in order))


def test_columns_know_their_sets_and_whether_order_matters(seed: int) -> None:
    filters, _ = drawn(random.Random(f"{seed} columns"), 200)
    found = gather(one.form for one in filters)
    hulls = found.hulls
    asked: dict[str, bool] = {}
    for at, one in enumerate(filters):
        tests = range(hulls.starts[at], hulls.starts[at + 1])
        spans = [slice(hulls.spans[test], hulls.spans[test + 1]) for test in tests]
        columns = [found.columns[hulls.column[test]] for test in tests]
        assert {
            column.text: column.values(hulls.low[span], hulls.high[span])
            for column, span in zip(columns, spans, strict=True)
        } == one.form.hull
        for box in (one.form.hull, *(one.form.boxes or ())):
            for term, values in box.items():
                asked[term] = asked.get(term, False) or asks_order(values)
    assert {column.text: column.ordered for column in found.columns} == asked


@pytest.mark.parametrize("most_terms", [30_000, 3])
def test_the_segment_of_hulls_finds_what_matches(
    seed: int, most_terms: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segments, "MOST_TERMS", most_terms)
    rng = random.Random(f"{seed} segment {most_terms}")
    filters, of = drawn(rng, 200)
    chosen = np.sort(rng.sample(range(len(filters)), 150))
    forms = [one.form for one in filters]
    segment = segment_of_hulls(gather(forms), chosen, forms)
    kept = [filters[at] for at in chosen]
    matcher = Matcher.from_segment(segment, kept, background=False)
    events = [event(rng, of) for _ in range(60)]
    batch = pa.RecordBatch.from_pylist(events, schema=tables.arrow_schema(of))
    expected = [[at for at, one in enumerate(kept) if one.matches(e)] for e in events]
    assert [sorted(ids) for ids in matcher.match_batch(batch).to_pylist()] == expected
    assert [sorted(matcher.match(e)) for e in events] == expected  # type: ignore[type-var]


def test_a_join_on_disk_finds_the_same(seed: int, tmp_path: Path) -> None:
    filters, _ = drawn(random.Random(f"{seed} join"), 150)
    forms = [one.form for one in {one.key: one for one in filters}.values()]
    looked: list[int] = []

    def on_disk(finder: Finder) -> Iterator[Block]:
        write_finder(tmp_path / "join", finder)
        opened = open_finder(tmp_path / "join", forms)
        for first in range(0, len(finder), 40):
            last = min(first + 40, len(finder))
            path = pairs_path(tmp_path, first, last)
            count = write_pairs(path, opened, first, last)
            (piece,) = read_pairs(path, finder.join)
            assert (*piece[:2], len(piece[2].above)) == (first, last, count)
            yield piece
        looked.append(opened.join.seen)
        assert finder.join.seen == opened.join.seen > 0

    found = cover_hulls(gather(forms), forms, on_disk)
    expected = cover(forms)
    assert looked
    assert np.array_equal(found.first, expected.first)
    edges = [set(zip(one.above.tolist(), one.below.tolist(), strict=True))
             for one in (found, expected)]  # fmt: skip
    assert edges[0] == edges[1]


def test_a_block_with_too_many_pairs_is_cut(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    forms = [parse(f"x > {number}").form for number in range(200)]
    monkeypatch.setattr(coverage, "ROOM", 1)  # so there is room for as many as there are hulls
    cut: list[tuple[int, int]] = []

    def in_pieces(finder: Finder) -> Iterator[Block]:
        for piece in finder.pieces(0, len(finder)):
            cut.append(piece[:2])
            yield piece

    found = cover_hulls(gather(forms), forms, in_pieces)
    assert len(cut) > 2
    assert [last for _, last in cut[:-1]] == [first for first, _ in cut[1:]]
    assert sorted(zip(found.above.tolist(), found.below.tolist(), strict=True)) == [
        (number, number + 1) for number in range(199)
    ]
