"""Filters that are added and removed leave nothing behind: no slots, cuts, terms, threads or
partial additions."""

from __future__ import annotations

import random
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.repeats import rounds

from tidings import parse
from tidings.matching import Matcher, held_filters as module
from tidings.matching.segments import segment, segment_builder


def codes(matcher: Matcher) -> int:
    terms = [t for sealed in matcher._state.parts for t in sealed.part.segment.terms]
    return sum(len(term.ranks) for term in terms)


def test_cuts_and_terms_of_what_is_gone_are_dropped() -> None:
    matcher = Matcher(background=False)
    matcher.add("stays", "x > 5 AND y = 'b'")
    sizes = []
    for turn in range(4):
        texts = {n: f"x = {turn * 10_000 + n} AND z{turn} IN ({n}, {n + 2})" for n in range(1500)}
        matcher.add_many(texts)
        matcher.merge()
        assert sorted(map(str, matcher.match({"x": turn * 10_000 + 7, f"z{turn}": 9}))) == ["7"]
        for id_ in texts:
            matcher.remove(id_)
        matcher.merge()
        sizes.append((codes(matcher), matcher._state.register.size, matcher.stats()["terms"]))
    assert len(set(sizes)) == 1, sizes
    assert matcher.match({"x": 6, "y": "b"}) == ["stays"]


@pytest.mark.usefixtures("engine")
def test_dropping_cuts_changes_no_answer(seed: int) -> None:
    rng = random.Random(seed)
    matcher = Matcher(background=False)
    filters = {}
    for n in range(400):
        tests = rng.sample([
            f"x BETWEEN {rng.randint(0, 90)} AND {rng.randint(50, 99)}", f"s > 'k{n % 50}'",
            f"x IN ({n % 97}, {n % 89}, {n % 83})", f"array_contains(tags, {n % 20})",
            f"s LIKE 'k{n % 30}%'", f"lower(s) = 'k{n % 9}'", f"y IS NULL OR y != {n % 40}",
        ], 2)  # fmt: skip
        filters[n] = parse(" AND ".join(f"({one})" for one in tests))
    matcher.add_many(filters)
    matcher.merge()
    for kept in (120, 30, 3):
        for id_ in rng.sample(sorted(filters), len(filters) - kept):
            matcher.remove(id_)
            del filters[id_]
        matcher.merge()
        for _ in range(100):
            event = {
                "x": rng.randint(-1, 100),
                "s": f"k{rng.randint(0, 60)}",
                "tags": [rng.randint(0, 20)],
                "y": rng.choice([None, rng.randint(0, 41)]),
            }
            want = {id_ for id_, one in filters.items() if one.matches(event)}
            assert set(matcher.match(event)) == want
            batch = pa.RecordBatch.from_pylist([event])
            assert set(matcher.match_batch(batch).to_pylist()[0]) == want


@pytest.mark.usefixtures("engine")
def test_a_merge_of_more_terms_than_columns_evaluates_the_rest(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(segment, "MOST_TERMS", 20)
    monkeypatch.setattr(module, "SEAL_AT", 10)
    matcher = Matcher(background=False)
    for part in range(3):
        names = [f"x{15 * part + n}" for n in range(15)]
        matcher.add_many({name: f"{name} IN (1, 5) AND z > 2" for name in names})
    matcher.merge()
    assert matcher.stats()["parts"] == 1
    assert matcher.stats()["terms"] <= 20
    matcher.save(tmp_path / "snapshot")
    for one in (matcher, Matcher.open(tmp_path / "snapshot")):
        for n in range(45):
            assert one.match({f"x{n}": 5, "z": 3}) == [f"x{n}"]
            assert one.match({f"x{n}": 4, "z": 3}) == []
            assert one.match({f"x{n}": 5, "z": 2}) == []


def test_what_was_never_sealed_leaves_no_slots_and_no_threads() -> None:
    matcher = Matcher()
    for n in range(3000):
        matcher.add(n, f"x = {n}")
        matcher.remove(n)
    matcher.merge()
    assert matcher._state.register.size < 1500
    before = threading.active_count()
    for _ in range(200):
        matcher.match({"x": 1})
    assert threading.active_count() <= before
    assert matcher._worker is None or not matcher._worker.is_alive()


def test_an_opened_snapshot_makes_no_dictionary_of_ids_to_match(tmp_path: Path) -> None:
    matcher = Matcher()
    matcher.add_many({n: f"x = {n} AND y = 1" for n in range(50)})
    matcher.save(tmp_path / "snapshot")
    opened = Matcher.open(tmp_path / "snapshot")
    for n in range(50):
        assert opened.match({"x": n, "y": 1}) == [n]
    opened.match_batch(pa.RecordBatch.from_pylist([{"x": 1, "y": 1}]))
    assert opened._state.register._slots is None


def test_a_bulk_that_fails_leaves_no_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise MemoryError

    matcher = Matcher(background=False)
    with monkeypatch.context() as patched:
        patched.setattr(module, "segment_of", fails)
        with pytest.raises(MemoryError):
            matcher.add_many({n: f"x = {n}" for n in range(1100)})
    assert len(matcher) == 0
    matcher.add_many({n: f"x = {n}" for n in range(1100)})
    assert matcher.match({"x": 3}) == [3]


def test_the_type_of_an_id_goes_with_it() -> None:
    matcher = Matcher(background=False)
    matcher.add_many({1: "x = 1", "a": "x = 1", 2: "x = 2"})
    batch = pa.RecordBatch.from_pylist([{"x": 1}, {"x": 2}])
    matcher.remove("a")
    assert matcher.match_batch(batch).to_pylist() == [[1], [2]]


@pytest.mark.usefixtures("engine")
def test_a_filter_removed_while_its_part_is_made_stays_removed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A merge that numbers slots anew waits for a part that is under way."""
    matcher = Matcher(background=False)
    matcher.add_many({f"old{n}": f"x = {n}" for n in range(3000)})
    for n in range(2999):
        matcher.remove(f"old{n}")
    build, made, go = segment_builder.segment_of, threading.Event(), threading.Event()

    def slowly(*args: Any, **more: Any) -> Any:
        made.set()
        assert go.wait(30)
        return build(*args, **more)

    monkeypatch.setattr(module, "segment_of", slowly)
    bulk = {f"new{n}": f"y = {n}" for n in range(1100)}
    adding = threading.Thread(target=matcher.add_many, args=(bulk,))
    adding.start()
    assert made.wait(30)
    matcher.remove("new0")
    merging = threading.Thread(target=matcher.merge)
    merging.start()
    merging.join(0.2)
    go.set()
    adding.join()
    merging.join()
    assert matcher.match({"y": 0}) == []
    assert matcher.match({"y": 1}) == ["new1"]
    assert matcher.match({"x": 2999}) == ["old2999"]


@pytest.mark.usefixtures("engine")
def test_rows_that_no_new_filter_may_match_are_not_read(seed: int) -> None:
    """Against each filter by itself, for tests of points, ranges, nulls and nested values."""
    rng = random.Random(seed)
    tests = (
        "x = {n}", "s = 'v{n}'", "x IN ({n}, 3)", "b", "s LIKE 'v{n}%'", "x IS NULL", "m = {n}",
        "f = {n}", "s.deep = {n}", "isabsent(x)", "z = {n}",
    )  # fmt: skip
    kinds = {"x": pa.int64(), "s": pa.string(), "f": pa.float64(), "b": pa.bool_(), "z": pa.null()}
    for _ in rounds(20, 100):
        matcher, filters, rows = Matcher(), {}, set[int]()
        chosen = tests[:3] if rng.random() < 0.5 else tests
        for n in range(rng.choice([1, 4, 12])):
            some = rng.sample(chosen, rng.choice([1, 2]))
            filters[n] = parse(" AND ".join(some).format(n=rng.randint(0, 9)))
            matcher.add(n, filters[n])
        events = [
            {name: value for name, value in {
                "x": rng.randint(0, 9), "s": f"v{rng.randint(0, 9)}", "b": rng.random() < 0.5,
                "f": rng.choice([0.5, float(rng.randint(0, 9))]),
            }.items() if rng.random() < 0.7}
            for _ in range(20)
        ]  # fmt: skip
        batch = pa.RecordBatch.from_pylist(events, pa.schema(kinds))

        def read(row: int, events: Any = events, rows: Any = rows) -> Any:
            rows.add(row)
            return events[row]

        found = matcher.match_rows(batch, read)
        if found is None:  # a filter distinguishes null from absent
            continue
        pairs = [*zip(found[0].tolist(), found[1].tolist(), strict=True)]
        expected = [
            (row, n) for row, one in enumerate(events) for n in filters if filters[n].matches(one)
        ]
        assert sorted(pairs) == sorted(expected)
        if len(filters) == 1 and chosen == tests[:3]:  # it needs a value that few rows have
            assert len(rows) < 20


@pytest.mark.usefixtures("engine")
def test_rows_are_matched_without_sealing_what_is_new(seed: int) -> None:
    """Through additions and removals, against each filter by itself."""
    rng = random.Random(seed)
    matcher = Matcher()
    filters = {}
    for turn in range(30):
        for n in range(turn * 40, turn * 40 + rng.choice([0, 3, 40])):
            filters[n] = parse(f"x > {rng.randint(0, 90)} AND (y IS NULL OR y != {n % 7})")
            matcher.add(n, filters[n])
        for id_ in rng.sample(sorted(filters), len(filters) // 8):
            matcher.remove(id_)
            del filters[id_]
        if turn % 10 == 9:
            matcher.merge()
        events = [
            {"x": rng.randint(0, 99), "y": rng.choice([None, *range(7)])}
            for _ in range(rng.choice([1, 20]))
        ]
        batch = pa.RecordBatch.from_pylist(events, pa.schema({"x": pa.int64(), "y": pa.int64()}))
        found = matcher.match_rows(batch, events.__getitem__)
        assert found is not None
        pairs = zip(found[0].tolist(), found[1].tolist(), strict=True)
        expected = [
            (row, n) for row, one in enumerate(events) for n in filters if filters[n].matches(one)
        ]
        assert sorted(pairs) == sorted(expected)
