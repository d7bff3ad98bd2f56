"""Segments: more terms than there are columns, sets of many intervals, merging again and again."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from tidings import NotificationError, parse
from tidings.matching import Matcher
from tidings.matching.segments import segment as module
from tidings.matching.segments.assembly import assemble, merge_segments
from tidings.matching.segments.part import Part
from tidings.matching.segments.segment_builder import build_segment


def test_terms_beyond_the_columns_are_evaluated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_TERMS", 20)
    matcher = Matcher(background=False)
    matcher.add_many((n, f"z = {n % 3} AND x{n} = 1") for n in range(60))
    matcher.merge()
    for n in (0, 17, 30, 59):
        assert matcher.match({"z": n % 3, f"x{n}": 1}) == [n]
        assert matcher.match({"z": n % 3, f"x{n}": 2}) == []
    batch = pa.RecordBatch.from_pylist([{"z": 59 % 3, "x59": 1}])
    assert matcher.match_batch(batch).to_pylist() == [[59]]


def test_merging_again_and_again_changes_nothing() -> None:
    texts = ["x IN (" + ", ".join(str(n) for n in range(0, 400, 2)) + ")", "x = 7 AND y != 3"]
    segment = build_segment((at, parse(text).form) for at, text in enumerate(texts))
    dead = np.zeros(2, np.uint8)
    sizes = {len(segment.arrays.set_low)}
    for _ in range(4):
        segment = assemble(merge_segments([segment], dead))
        sizes.add(len(segment.arrays.set_low))
    assert len(sizes) == 1
    part = Part(segment)
    for value in (-1, 0, 1, 7, 398, 399, 400):
        event = {"x": value, "y": 1}
        want = [at for at, text in enumerate(texts) if parse(text).matches(event)]
        assert sorted(part.probe(event, dead).tolist()) == want


def test_two_columns_of_one_name_are_refused() -> None:
    matcher = Matcher()
    matcher.add("a", "x = 1")
    batch = pa.RecordBatch.from_arrays([pa.array([1]), pa.array([2])], ["x", "x"])
    with pytest.raises(NotificationError, match="the column 'x' occurs 2 times"):
        matcher.match_batch(batch)


def test_declared_types_are_read() -> None:
    from tidings import Attributes

    matcher = Matcher(Attributes({"day": "date", "n": "integer"}))
    matcher.add("a", "day > '2024-01-01' AND n = 5")
    assert matcher.match({"day": "2024-02-01", "n": "5"}) == ["a"]
    assert matcher.match('{"day": "2024-02-01", "n": 5}') == ["a"]
    batch = pa.RecordBatch.from_pylist([{"day": "2024-02-01", "n": "5"}, {"day": None, "n": "5"}])
    assert matcher.match_batch(batch).to_pylist() == [["a"], []]
    with pytest.raises(NotificationError, match="'day': 'x' is not a date"):
        matcher.match_batch(pa.RecordBatch.from_pylist([{"day": "x"}]))
