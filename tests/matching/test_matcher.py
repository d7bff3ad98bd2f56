"""The engine against the reference semantics: random filters, events and changes."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.filters.strategies import Schema, Writer, event, schema
from tests.matching.tables import arrow_schema
from tests.repeats import rounds, runs

from tidings import Filter, FilterError, parse
from tidings.matching import Matcher


def random_filters(rng: random.Random, of: Schema, count: int) -> list[Filter]:
    writer = Writer(rng, of, spark=False)
    found: list[Filter] = []
    while len(found) < count:
        try:
            found.append(parse(writer.filter()))
        except FilterError:
            continue
    return found


def expected(filters: dict[Any, Filter], events: list[dict[str, Any]]) -> list[set[Any]]:
    return [{id_ for id_, f in filters.items() if f.matches(e)} for e in events]


@pytest.mark.parametrize("run", runs(2, 6))
def test_random_changes_and_matches_agree_with_the_reference(
    seed: int, run: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(f"{seed}/{run}")
    if run % 3:  # few filters are worth no grid: have them in one all the same
        monkeypatch.setattr("tidings.matching.segments.probe.LEAST_VISITS", 0)
    monkeypatch.setattr("tidings.matching.batch_pieces.LEAST_PIECE", 32)
    of = schema(rng)
    engine = ("auto", "bdd", "trees")[run % 3]
    matcher = Matcher(background=run % 2 == 0, engine=engine)
    live: dict[Any, Filter] = {}
    pool = random_filters(rng, of, 260)
    for step in rounds(7, 14):
        fresh = [(f"s{step}-{n}", pool.pop()) for n in range(rng.choice([1, 5, 30]) if pool else 0)
                 if pool]  # fmt: skip
        if rng.random() < 0.5:
            matcher.add_many(fresh)
        else:
            for id_, one in fresh:
                matcher.add(id_, one.sql() if rng.random() < 0.5 else one)
        live.update(fresh)
        for id_ in rng.sample(sorted(live), min(len(live) // 8, 5)):
            matcher.remove(id_)
            del live[id_]
        if live and pool and rng.random() < 0.5:
            id_ = rng.choice(sorted(live))
            live[id_] = pool.pop()
            matcher.replace(id_, live[id_])
        if rng.random() < 0.25:
            matcher.merge()
        if rng.random() < 0.25:
            matcher.save(tmp_path / "snapshot")
            matcher = Matcher.open(tmp_path / "snapshot", background=run % 2 == 0, engine=engine)
        events = [event(rng, of) for _ in range(rng.choice([1, 20, 150]))]
        want = expected(live, events)
        assert len(matcher) == len(live)
        singles = [matcher.match(e) for e in events[:20]]
        assert [set(ids) for ids in singles] == want[:20], f"step {step}"
        assert all(len(ids) == len(set(ids)) for ids in singles)
        batch = pa.RecordBatch.from_pylist(events, schema=arrow_schema(of))
        lists = matcher.match_batch(batch, threads=rng.choice([1, 2])).to_pylist()
        assert [set(ids) for ids in lists] == want, f"step {step}"
        assert all(len(ids) == len(set(ids)) for ids in lists)
        counts = matcher.match_counts(batch, threads=rng.choice([1, 2]))
        assert counts.tolist() == [len(ids) for ids in want], f"step {step}"
        rows, ids = matcher.match_pairs(pa.Table.from_batches([batch]))
        assert sorted(zip(rows.tolist(), ids.tolist(), strict=True)) == sorted(
            (row, id_) for row, found in enumerate(want) for id_ in found
        )


def test_filters_that_can_never_match(tmp_path: Path) -> None:
    texts = {
        "a": "x > 1",
        "b": "x > 5 AND x < 3",
        "c": "FALSE",
        "d": "x RLIKE 'a'",
        "e": "TRUE",
        "f": " AND ".join(f"(a{n} = 1 OR b{n} = 1)" for n in range(30)),
        "g": "y = 1 AND y = 2 OR x IN (1, 2) AND x = 3",
    }
    assert [id_ for id_, text in texts.items() if parse(text).never] == ["b", "c", "g"]
    matcher = Matcher(background=False)
    matcher.add_many(texts)
    assert matcher.never() == ["b", "c", "g"]
    matcher.remove("c")
    matcher.replace("b", "x > 5")
    matcher.replace("a", "x = 1 AND x = 2")
    assert sorted(map(str, matcher.never())) == ["a", "g"]
    matcher.merge()
    assert sorted(map(str, matcher.never())) == ["a", "g"]
    matcher.save(tmp_path / "saved")
    assert sorted(map(str, Matcher.open(tmp_path / "saved").never())) == ["a", "g"]
    assert Matcher().never() == []
