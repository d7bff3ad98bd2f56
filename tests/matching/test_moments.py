"""Exactness with threads: each result was correct at some moment during the call.

Every change and every call notes when it began and when it ended, on one clock that all threads
share. A change takes effect somewhere between the two, so for each filter the states that a call
may have seen are known, and its answer has to agree with one of them.
"""

from __future__ import annotations

import itertools
import math
import random
import sys
import threading
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

from tidings import parse
from tidings.matching import Matcher, batch_pieces, held_filters as module

TEXTS = [
    "x >= 3", "x BETWEEN 2 AND 7 AND s = 'a'", "x = 1 OR s = 'b' OR y < 0", "s LIKE '%a%b%'",
    "lower(s) = 'ab' AND x > 2", "x < y", "array_contains(tags, 'u') AND x != 5", "true",
    "NOT array_contains(tags, 'v')", "x > 9 AND x < 3", "length(s) = 1", "x + y > 6",
    " AND ".join(f"(x = {n} OR y != {n} OR s = '{n}')" for n in range(9)),
]  # fmt: skip
EVENTS: list[dict[str, Any]] = [
    {"x": x, "y": y, "s": s, "tags": tags}
    for x, y in ((1, -1), (5, 6), (8, 2))
    for s in ("a", "AB", "xaxbx")
    for tags in (["u"], ["v", "w"])
]
FILTERS = [parse(text) for text in TEXTS]
ENOUGH = 10  # answers while filters change
TRUE = [[one.matches(event) for event in EVENTS] for one in FILTERS]


class Change(NamedTuple):
    began: float
    ended: float
    filter: int | None  # None: it is gone


class Answer(NamedTuple):
    began: int
    ended: int
    events: list[int]
    ids: list[list[Any]]


class World:
    """A matcher, a clock, and all that was done and answered."""

    def __init__(self, seed: str) -> None:
        self.seed = seed
        self.matcher = Matcher()
        self.clock = itertools.count()
        self.histories: dict[str, list[Change]] = {}
        self.answers: list[Answer] = []
        self.problems: list[BaseException] = []
        self.done = threading.Event()

    def write(self, name: str, rounds: int) -> None:
        """Make changes to the ids that begin with a name, which no other thread changes, until
        there were enough changes and answers."""
        rng = random.Random(f"{self.seed} {name}")
        ids = [f"{name}-{n}" for n in range(40)]
        for id_ in ids:
            self.histories[id_] = [Change(-math.inf, -math.inf, None)]
        for done in itertools.count():
            if done >= rounds and len(self.answers) > ENOUGH:
                return
            id_, number = rng.choice(ids), rng.randrange(len(FILTERS))
            history = self.histories[id_]
            given = TEXTS[number] if rng.random() < 0.5 else FILTERS[number]
            began = next(self.clock)
            if history[-1].filter is None:
                self.matcher.add(id_, given)
            elif rng.random() < 0.6:
                self.matcher.replace(id_, given)
            else:
                self.matcher.remove(id_)
                number = -1
            history.append(Change(began, next(self.clock), None if number < 0 else number))

    def read(self, match: Callable[[list[int]], list[list[Any]]], events: list[int]) -> None:
        began = next(self.clock)
        ids = match(events)
        self.answers.append(Answer(began, next(self.clock), events, ids))

    def singly(self, events: list[int]) -> list[list[Any]]:
        return [self.matcher.match(EVENTS[event]) for event in events]

    def in_batch(self, events: list[int]) -> list[list[Any]]:
        batch = pa.RecordBatch.from_pylist([EVENTS[event] for event in events])
        found: list[list[Any]] = self.matcher.match_batch(batch, threads=2).to_pylist()
        return found

    # -- what was possible ---------------------------------------------------------------------

    def impossible(self) -> list[str]:
        """Every filter that an answer has and can't have, or has not and must have."""
        found = []
        for answer in self.answers:
            sets = [set(ids) for ids in answer.ids]
            assert [len(ids) for ids in answer.ids] == [len(ids) for ids in sets]
            for id_, history in self.histories.items():
                seen = states(history, answer.began, answer.ended)
                for event, ids in zip(answer.events, sets, strict=True):
                    verdicts = {one is not None and TRUE[one][event] for one in seen}
                    if (id_ in ids) not in verdicts:
                        found.append(f"{id_} in {answer.began} to {answer.ended}, {verdicts}")
        return found


def states(history: list[Change], began: float, ended: float) -> list[int | None]:
    """What a filter may have been between two moments."""
    first = bisect_right(history, began, lo=1, key=lambda change: change.ended) - 1
    last = bisect_left(history, ended, key=lambda change: change.began)
    return [change.filter for change in history[first:last]]


def run(world: World, writers: list[Callable[[], None]], others: list[Callable[[], None]]) -> None:
    """Writers until they are through; the others again and again meanwhile."""

    def noted(work: Callable[[], None]) -> Callable[[], None]:
        def wrapped() -> None:
            try:
                work()
            except BaseException as problem:
                world.problems.append(problem)

        return wrapped

    def again(work: Callable[[], None]) -> Callable[[], None]:
        def repeated() -> None:
            while not world.done.is_set():
                work()

        return repeated

    busy = [threading.Thread(target=noted(work)) for work in writers]
    rest = [threading.Thread(target=noted(again(work))) for work in others]
    for thread in busy + rest:
        thread.start()
    for thread in busy:
        thread.join()
    world.done.set()
    for thread in rest:
        thread.join()
    assert world.problems == []


@pytest.fixture(autouse=True)
def _restless(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Merge and prune all the time, and let threads take turns a hundred times as often."""
    monkeypatch.setattr(module, "SEAL_AT", 20)
    monkeypatch.setattr(module, "PRUNE", 2)
    monkeypatch.setattr(batch_pieces, "BATCH", 5)
    monkeypatch.setattr(batch_pieces, "LEAST_PIECE", 2)
    before = sys.getswitchinterval()
    sys.setswitchinterval(5e-5)
    yield
    sys.setswitchinterval(before)


def check_moments(seed: str, folder: Path, rounds: int) -> None:
    world = World(seed)
    everything = list(range(len(EVENTS)))
    turns = itertools.cycle(everything)

    def saved(events: list[int]) -> list[list[Any]]:
        world.matcher.save(folder / "snapshot")
        opened = Matcher.open(folder / "snapshot", background=False)
        return [opened.match(EVENTS[event]) for event in events]

    run(
        world,
        [partial(world.write, name, rounds) for name in ("a", "b", "c")],
        [
            lambda: world.read(world.singly, [next(turns)]),
            lambda: world.read(world.in_batch, everything),
            lambda: world.read(saved, [next(turns), next(turns)]),
            world.matcher.merge,
        ],
    )
    world.read(world.singly, everything)
    world.read(world.in_batch, everything)
    assert world.impossible() == []


@pytest.mark.usefixtures("costly_engine")
def test_an_answer_was_right_at_some_moment(seed: int, tmp_path: Path) -> None:
    check_moments(f"{seed} moments", tmp_path, rounds=400)


@pytest.mark.usefixtures("diagrams")
def test_an_answer_of_diagrams_was_right_at_some_moment(seed: int, tmp_path: Path) -> None:
    """A short run; `make soak` runs the test above with diagrams too."""
    check_moments(f"{seed} diagrams", tmp_path, rounds=40)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_answers_were_right_at_some_moment_for_long(seed: int, tmp_path: Path) -> None:
    for number in range(20):
        check_moments(f"{seed} moments {number}", tmp_path, rounds=4000)


@pytest.mark.usefixtures("costly_engine")
def test_a_batch_sees_one_moment(seed: int) -> None:
    """All filters as they were together: no change is seen without those before it."""
    rng = random.Random(f"{seed} one moment")
    world = World(f"{seed}")
    live: list[frozenset[str]] = [frozenset()]
    changes: list[Change] = [Change(-math.inf, -math.inf, 0)]

    def write() -> None:
        for number in range(1500):
            id_ = f"{rng.randrange(50)}"
            began = next(world.clock)
            if id_ not in live[-1]:
                world.matcher.add(id_, TEXTS[7])
                live.append(live[-1] | {id_})
            else:
                world.matcher.replace(id_, TEXTS[9])
                world.matcher.remove(id_)
                live.append(live[-1] - {id_})
            changes.append(Change(began, next(world.clock), number + 1))

    events = list(range(6))
    run(world, [write], [lambda: world.read(world.in_batch, events)] * 2)
    for answer in world.answers:
        seen = {frozenset(ids) for ids in answer.ids}
        assert len(seen) == 1
        possible = states(changes, answer.began, answer.ended)
        assert seen <= {live[number] for number in possible if number is not None}
