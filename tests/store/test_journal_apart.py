"""A journal with a separate thread for checkpoints: batches are written at the same time."""

from __future__ import annotations

import random
import threading
from pathlib import Path
from typing import Any

import pytest

from tidings.model import EnvironmentProblem
from tidings.routing.protocol.messages import Mark
from tidings.routing.root.records import Record
from tidings.store.journal import FileJournal, Retention, checkpoint, journal as module
from tidings.store.journal.upkeep import upkeep


def record(serial: int, size: int = 300) -> Record:
    mark = Mark(serial % 5 + 1, serial // 5 + 1, (serial % 5 + 1,))
    return Record(serial, f"p{serial % 3}", serial, (mark,), (mark.node,), bytes(size))


def written(journal: FileJournal) -> None:
    batch = journal.take()
    assert batch is not None
    journal.write(batch)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SEGMENT_BYTES", 8_000)
    monkeypatch.setattr(upkeep, "CHECKPOINT_BYTES", 20_000)


@pytest.mark.usefixtures("small")
def test_nothing_is_written_down_before_it_is_tended(tmp_path: Path) -> None:
    journal = FileJournal(tmp_path / "journal", apart=True)
    journal.begin_life(1)
    for serial in range(1, 200):
        journal.append(record(serial))
        written(journal)
    assert journal.is_due
    assert not (tmp_path / "journal" / "checkpoint").exists()
    journal.tend()
    assert (tmp_path / "journal" / "checkpoint").exists()
    assert not journal.is_due
    journal.close()


@pytest.mark.usefixtures("small")
def test_what_is_written_meanwhile_is_there_after_a_restart(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    path = tmp_path / "journal"
    journal = FileJournal(path, Retention(bytes=60_000), apart=True)
    journal.begin_life(1)
    for node in range(1, 6):
        journal.add_node(node, b"n = %d" % node)
    written(journal)
    problems: list[BaseException] = []

    def tending(over: threading.Event) -> None:
        try:
            while not over.is_set():
                if journal.is_due:
                    journal.tend()
        except BaseException as problem:
            problems.append(problem)

    over = threading.Event()
    thread = threading.Thread(target=tending, args=(over,))
    thread.start()
    last = 0
    for _ in range(400):
        for _ in range(rng.randrange(1, 6)):
            last += 1
            journal.append(record(last, rng.randrange(600)))
        written(journal)
    over.set()
    thread.join()
    assert not problems
    journal.tend()
    assert journal._segments.size() < 200_000  # what is beyond the retention went
    journal.close()
    again = FileJournal(path)
    assert again.losses == []
    state = again._catch_up()
    assert state.serial == last
    expected: dict[int, int] = {}
    for serial in range(1, last + 1):
        (mark,) = record(serial, 0).marks
        expected[mark.node] = mark.number
    assert {node: one.count for node, one in state.counters.items()} == expected
    again.close()


@pytest.mark.usefixtures("small")
def test_what_can_not_be_tended_is_said_and_nothing_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = FileJournal(tmp_path / "journal", apart=True)
    journal.begin_life(1)
    for serial in range(1, 200):
        journal.append(record(serial))
    written(journal)

    def fails(*_: Any) -> int:
        raise OSError("no space left")

    with monkeypatch.context() as patched:
        patched.setattr(checkpoint, "write", fails)
        with pytest.raises(EnvironmentProblem, match="can't be maintained: no space left"):
            journal.tend()
    journal.append(record(200))
    written(journal)
    journal.tend()
    journal.close()
    again = FileJournal(tmp_path / "journal")
    assert (again.losses, again._catch_up().serial) == ([], 200)
    again.close()
