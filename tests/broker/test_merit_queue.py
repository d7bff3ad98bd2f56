"""The queue in the order of merit, and its files, against a sorted list."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from tests.repeats import rounds

from tidings.broker.queues.merit_queue import MeritQueue
from tidings.broker.queues.spill import Spill


def make(folder: Path, most_bytes: int = 300, ageing: float = 10.0) -> MeritQueue[str, bytes]:
    return MeritQueue(Spill(folder, 200), bytes, bytes, most_bytes=most_bytes, ageing=ageing)


def test_random_traffic_against_a_sorted_list(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    for at in rounds(4, 40):
        queue = make(tmp_path / str(at), rng.choice([0, 300, 10_000]))
        model: list[tuple[float, int, str, bytes]] = []
        spilled = 0
        for now in range(400):
            step = rng.random()
            if step < 0.55:
                sender, item = rng.choice("abc"), rng.randbytes(rng.randrange(1, 60))
                merit = rng.choice([0.0, 1.0, 5.0])
                queue.put(sender, item, len(item), merit, now)
                model.append((-(merit - now / 10.0), now, sender, item))
            elif step < 0.97 and model:
                model.sort()
                _, _, *best = model.pop(0)
                assert queue.take() == tuple(best)
            elif step > 0.99:
                gone = rng.choice("abc")
                queue.forget(gone)
                model = [one for one in model if one[2] != gone]
            assert len(queue) == len(model)
            assert queue.size == sum(len(one[3]) for one in model)
            assert queue.memory <= queue._most_bytes
            spilled += queue.spilled
        assert bool(spilled) is (queue._most_bytes < 10_000)
        while model:
            model.sort()
            assert queue.take() == tuple(model.pop(0)[2:])
        with pytest.raises(IndexError):
            queue.take()
        assert queue._spill.bytes == queue._spill.files == 0
        assert not list((tmp_path / str(at)).glob("*"))


def test_what_waits_ages(tmp_path: Path) -> None:
    queue = make(tmp_path / "q", ageing=10.0)
    queue.put("a", b"old", 3, 0.0, now=0)
    for now in range(60):
        queue.put("a", b"new", 3, 5.0, now)
    order = [queue.take()[1] for _ in range(61)]
    assert order.index(b"old") == 50  # an age of 50 seconds makes up for a merit of 5


def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What can't be written stays in memory; nothing is lost."""
    queue = make(tmp_path / "q", most_bytes=4)

    def refuse(*_: object) -> int:
        raise OSError(28, "no space left")

    queue.put("a", b"one", 3, 1.0, 0)
    monkeypatch.setattr(os, "pwrite", refuse)
    queue.put("a", b"two", 3, 2.0, 0)
    assert (queue.spilled, queue.memory) == (0, 6)
    monkeypatch.undo()  # there is room again
    queue.put("a", b"3rd", 3, 3.0, 0)
    assert (queue.spilled, queue.memory) == (2, 3)
    assert [queue.take()[1] for _ in range(3)] == [b"3rd", b"two", b"one"]


def test_senders_that_come_and_go_leave_nothing(tmp_path: Path) -> None:
    queue = make(tmp_path / "q")
    queue.put("stays", b"x", 1, 9.0, 0)
    for _ in range(20):
        for now in range(50):
            queue.put("goes", b"y", 1, 1.0, now)
        queue.forget("goes")
    assert max(len(queue._best), len(queue._worst)) < 200
    assert queue.take()[1] == b"x"


def test_files_of_an_earlier_process_are_deleted(tmp_path: Path) -> None:
    first = Spill(tmp_path / "s")
    first.put(b"left behind")
    again = Spill(tmp_path / "s")
    assert not list((tmp_path / "s").glob("*"))
    place = again.put(b"x")
    assert again.take(place) == b"x"
    again.put(b"y")
    again.close()
    assert not (tmp_path / "s").exists()
