"""Readers and writers at once: filters that are present all the time are always found."""

from __future__ import annotations

import threading
from typing import Any

import pyarrow as pa
import pytest

from tidings import TidingsError
from tidings.matching import Matcher, held_filters as module


@pytest.mark.usefixtures("engine")
def test_matching_goes_on_while_filters_change(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SEAL_AT", 40)  # merge all the time
    matcher = Matcher()
    steady = {f"steady-{n}" for n in range(100)}
    matcher.add_many((id_, f"x >= {n}") for n, id_ in enumerate(sorted(steady)))
    done = threading.Event()
    problems: list[Any] = []

    def write() -> None:
        for round_ in range(60):
            for n in range(20):
                matcher.add(f"passing-{round_}-{n}", f"x >= {n} AND y = {round_ % 3}")
            for n in range(20):
                id_ = f"passing-{round_}-{n}"
                if n % 3:
                    matcher.remove(id_)
                else:
                    matcher.replace(id_, "x = -1")
        done.set()

    def read() -> None:
        batch = pa.RecordBatch.from_pylist([{"x": 1000, "y": n % 3} for n in range(100)])
        while not done.is_set():
            found = matcher.match({"x": 1000, "y": 1})
            if not steady <= set(found) or len(found) != len(set(found)):
                problems.append(steady - set(found))
            lists = matcher.match_batch(batch).to_pylist()
            problems.extend(steady - set(ids) for ids in lists if not steady <= set(ids))
            problems.extend(ids for ids in lists if len(ids) != len(set(ids)))

    threads = [threading.Thread(target=run) for run in (write, read, read)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    matcher.merge()
    assert set(matcher.match({"x": 1000, "y": 1})) == steady
    kept = {f"passing-{r}-{n}" for r in range(60) for n in range(0, 20, 3)}
    assert set(matcher.match({"x": -1})) == kept
    assert matcher.stats()["parts"] == 1


@pytest.mark.usefixtures("costly_engine")
def test_what_was_removed_takes_no_room_after_a_merge() -> None:
    matcher = Matcher(background=False)
    for round_ in range(5):
        matcher.add_many((f"{round_}-{n}", f"x = {n}") for n in range(2000))
        for n in range(2000):
            matcher.remove(f"{round_}-{n}")
        matcher.merge()
    stats = matcher.stats()
    assert stats["boxes"] == 0
    assert matcher._state.register.size == 0
    assert len(matcher) == 0


@pytest.mark.usefixtures("engine")
def test_ids_are_kept_apart() -> None:
    matcher = Matcher()
    matcher.add("a", "x = 1")
    with pytest.raises(TidingsError, match="the id 'a' already has a filter"):
        matcher.add("a", "x = 2")
    with pytest.raises(TidingsError, match="the id 'b' occurs twice"):
        matcher.add_many([("b", "x = 1"), ("b", "x = 2")])
    with pytest.raises(TidingsError, match="there is no filter with the id 'c'"):
        matcher.remove("c")
    assert "b" not in matcher
    assert matcher.match({"x": 1}) == ["a"]


def test_nothing_is_added_when_one_is_refused() -> None:
    matcher = Matcher()
    with pytest.raises(TidingsError):
        matcher.add_many([("a", "x = 1"), ("b", "x =")])
    assert len(matcher) == 0


@pytest.mark.usefixtures("engine")
def test_a_replaced_filter_is_always_there_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SEAL_AT", 40)
    matcher = Matcher()
    matcher.add("a", "x = 1")
    done = threading.Event()
    found: set[tuple[Any, ...]] = set()

    def read() -> None:
        batch = pa.RecordBatch.from_pylist([{"x": 1}])
        while not done.is_set():
            found.add(tuple(matcher.match({"x": 1})))
            found.add(tuple(matcher.match_batch(batch).to_pylist()[0]))

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(600):
        matcher.replace("a", f"x < {5 + number}" if number % 2 else "x = 1")
    done.set()
    reader.join()
    assert found == {("a",)}


def test_churn_leaves_nothing_behind() -> None:
    matcher = Matcher(background=False)
    matcher.add_many((n, f"x = {n}") for n in range(6000))
    for round_ in range(20):
        for n in range(1024):
            matcher.replace(n, f"x = {n + round_}")
        matcher.merge()
    assert matcher._state.register.size < 2 * 6000
    assert len(matcher) == 6000
