"""Numbers of pipelines' notifications: no number is given twice, and a question that is asked again
gets the same answer, whatever died in between."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.damage import flip_bit

from tidings.model import EnvironmentProblem, TidingsError
from tidings.store import Accepting, ChangeLog
from tidings.store.groups.end_mark import EndMarkFile
from tidings.store.numbers import pack_counts, unpack_counts


def ask(
    numbers: Accepting,
    outbox: str,
    batch: int,
    attempt: str,
    counts: dict[int, int],
    floor: dict[int, int] | None = None,
) -> dict[int, int]:
    """Have a batch accepted, as an outbox that has numbered all before it. Without a floor, the
    log knows the batch before."""

    def state_floor() -> dict[int, int]:
        assert floor is not None
        return floor

    after = batch - 1 if batch else None
    return numbers.accept(outbox, batch, attempt, counts, after=after, floor=state_floor)


def test_counts_are_the_same_as_bytes(seed: int) -> None:
    chance = random.Random(seed)
    for size in (0, 1, 2, 500):
        counts = {chance.randrange(1 << 60): chance.randrange(1 << 40) for _ in range(size)}
        assert unpack_counts(pack_counts(counts)) == counts
    assert unpack_counts(b"") == {}
    with pytest.raises(ValueError, match="expected packed counts"):
        unpack_counts(b"1234")


def test_nodes_count_on_over_all_outboxes(tmp_path: Path) -> None:
    numbers = ChangeLog(tmp_path / "log").numbers
    assert ask(numbers, "a", 0, "x", {1: 3, 2: 1}, {}) == {1: 0, 2: 0}
    assert ask(numbers, "b", 0, "y", {1: 2}, {}) == {1: 3}
    assert ask(numbers, "a", 1, "z", {1: 1, 3: 1}) == {1: 5, 3: 0}
    again = ChangeLog(tmp_path / "log").numbers
    for one in (numbers, again):  # the last batch of each outbox is known
        assert ask(one, "a", 1, "z", {1: 1, 3: 1}) == {1: 5, 3: 0}
        assert ask(one, "b", 0, "y", {1: 2}) == {1: 3}
        assert one.counters() == {1: 6, 2: 1, 3: 1}
    assert ChangeLog(tmp_path / "log").version == 0  # numbers are no changes


def test_an_unknown_outbox_states_its_last_numbers(tmp_path: Path) -> None:
    """An outbox of an older release, which numbered for itself."""
    numbers = Accepting(tmp_path)
    assert ask(numbers, "a", 7, "x", {1: 1}, {1: 40, 2: 9}) == {1: 40}
    # node 2 was not in that batch, and is continued all the same
    assert ask(Accepting(tmp_path), "a", 8, "y", {1: 1, 2: 1}) == {1: 41, 2: 9}
    # another one, whose numbers are lower
    assert ask(Accepting(tmp_path), "b", 3, "z", {1: 1, 5: 1}, {1: 2, 5: 2}) == {
        1: 42,
        5: 2,
    }


def test_a_batch_that_was_committed_again_gets_new_numbers(tmp_path: Path) -> None:
    """The outbox and its checkpoint were restored from a copy."""
    numbers = Accepting(tmp_path)
    for batch in range(4):
        ask(numbers, "a", batch, f"first {batch}", {1: 10}, {})
    assert ask(numbers, "a", 2, "second 2", {1: 3}, {1: 20}) == {1: 40}
    assert ask(numbers, "a", 3, "second 3", {1: 3}) == {1: 43}
    assert ask(numbers, "a", 3, "third 3", {1: 3}, {1: 23}) == {1: 46}


@pytest.mark.parametrize("segment_bytes", [300, 8 << 20])
def test_any_interleaving(tmp_path: Path, seed: int, segment_bytes: int) -> None:
    """Three processes and five outboxes; questions are repeated, and objects are opened again. A
    plain dictionary is the oracle."""
    chance = random.Random(seed)
    made = [Accepting(tmp_path, segment_bytes=segment_bytes) for _ in range(3)]
    counted: dict[int, int] = {}
    last = dict[str, tuple[int, str, dict[int, int], dict[int, int]]]()
    for step in range(400):
        at = chance.randrange(3)
        if chance.random() < 0.1:
            made[at] = Accepting(tmp_path, segment_bytes=segment_bytes)
        outbox = f"outbox {chance.randrange(5)}"
        if outbox in last and chance.random() < 0.3:
            batch, attempt, counts, expected = last[outbox]
            assert ask(made[at], outbox, batch, attempt, counts) == expected
            continue
        batch, counts = last[outbox][0] + 1 if outbox in last else 0, dict[int, int]()
        for node in chance.sample(range(1, 40), chance.randrange(1, 6)):
            counts[node] = chance.randrange(1, 9)
        expected = {node: counted.get(node, 0) for node in counts}
        assert ask(made[at], outbox, batch, f"{step}", counts, {}) == expected
        last[outbox] = batch, f"{step}", counts, expected
        for node, count in counts.items():
            counted[node] = counted.get(node, 0) + count
    assert all(one.counters() == counted for one in made)
    if segment_bytes < 8 << 20:
        assert len([*tmp_path.glob("*.log")]) == 1  # older files are dropped


def test_a_failed_write_numbers_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = Accepting(tmp_path)
    ask(numbers, "a", 0, "x", {1: 1}, {})

    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    for broken in ("write_at", "sync_handle"):
        with monkeypatch.context() as patch:
            patch.setattr(f"tidings.store.groups.log.{broken}", fail)
            with pytest.raises(EnvironmentProblem, match="No space left"):
                ask(numbers, "a", 1, "y", {1: 1})
    # whether this one reached the disk is not certain; either way the answer is the same
    with monkeypatch.context() as patch:
        patch.setattr(EndMarkFile, "write", fail)
        patch.setattr(os, "ftruncate", fail)
        with pytest.raises(EnvironmentProblem):
            ask(numbers, "a", 1, "y", {1: 1})
    for one in (numbers, Accepting(tmp_path)):
        assert ask(one, "a", 1, "y", {1: 1}) == {1: 1}
    assert numbers.counters() == {1: 2}


def test_damage_is_one_sentence(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    numbers = Accepting(tmp_path)
    for batch in range(5):
        ask(numbers, "a", batch, "x", {1: 1}, {})
    (path,) = tmp_path.glob("*.log")
    whole = path.read_bytes()
    for _ in range(30):
        flip_bit(path, chance.randrange(len(whole)), 1 << chance.randrange(8))
        with pytest.raises(TidingsError, match="are damaged") as caught:
            ask(Accepting(tmp_path), "a", 5, "x", {1: 1}, {})
        assert "\n" not in str(caught.value)
        path.write_bytes(whole)
    assert ask(Accepting(tmp_path), "a", 5, "x", {1: 1}) == {1: 5}


# Asks, dies at any moment, and asks again what it did not hear of. Writes come slowly and in small
# pieces, so that many of the kills find half a group.
ASK_ON = """
import os, sys, time
from pathlib import Path
from tidings.store import Accepting
write = os.pwrite
os.pwrite = lambda handle, data, offset: (time.sleep(0.0005), write(handle, data[:11], offset))[1]
name, batch = sys.argv[2], int(sys.argv[3])
numbers = Accepting(Path(sys.argv[1]), segment_bytes=500)
while True:
    found = numbers.accept(
        name, batch, f"attempt {batch}", {1: 2, 2 + batch % 3: 1}, after=batch - 1, floor=dict
    )
    print(batch, found[1], found[2 + batch % 3], flush=True)
    batch += 1
"""


@pytest.mark.timeout(300)
def test_killed_processes_ask_again(tmp_path: Path, seed: int) -> None:
    """Two outboxes, whose drivers are killed; no number is missing, and none is given twice."""
    chance = random.Random(seed)
    heard: dict[str, dict[int, tuple[int, int]]] = {"a": {}, "b": {}}
    for _ in range(6):
        running = {
            name: subprocess.Popen(
                [sys.executable, "-c", ASK_ON, str(tmp_path), name, str(len(known))],
                stdout=subprocess.PIPE, text=True,
            )
            for name, known in heard.items()
        }  # fmt: skip
        began = {
            name: [process.stdout.readline().strip() for _ in range(chance.randint(2, 6))]
            for name, process in running.items()
            if process.stdout is not None
        }
        time.sleep(chance.random() / 50)
        for name, process in running.items():
            process.kill()
            told, _ = process.communicate()
            for line in [*began[name], *told.splitlines()]:
                if len(line.split()) == 3 and line[-1:].isdigit():
                    batch, first, second = map(int, line.split())
                    heard[name][batch] = first, second
    numbers = Accepting(tmp_path)
    given: dict[int, list[int]] = {}
    for name, known in heard.items():
        assert sorted(known) == list(range(len(known)))
        batch = len(known)  # accepted or not, the answer is right
        found = ask(numbers, name, batch, f"attempt {batch}", {1: 2, 2 + batch % 3: 1}, {})
        known[batch] = found[1], found[2 + batch % 3]
        for at, (first, second) in known.items():
            given.setdefault(1, []).extend((first + 1, first + 2))
            given.setdefault(2 + at % 3, []).append(second + 1)
    assert sum(map(len, heard.values())) > 20
    for node, each in given.items():
        assert sorted(each) == list(range(1, len(each) + 1)), node
    assert numbers.counters() == {node: len(each) for node, each in given.items()}
