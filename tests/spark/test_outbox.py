"""The outbox: pins stay, commits follow each other, counters add up, one writer at a time."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.spark.outboxes import files_of

from tidings import TidingsError
from tidings.model import EnvironmentProblem
from tidings.spark.outbox import outbox as module
from tidings.spark.outbox.batches.filing import describe_file
from tidings.spark.outbox.outbox import Commit, Outbox
from tidings.store.groups.end_mark import EndMarkFile


@pytest.fixture
def outbox(tmp_path: Path) -> Outbox:
    return Outbox(tmp_path / "out")


def commit(batch: int, attempt: str = "a", outbox: Outbox | None = None, **more: Any) -> Commit:
    fields: dict[str, Any] = {"version": 1, "micros": 2, "rows": 0, "matched": 0, "told": 0}
    files = [] if outbox is None else files_of(outbox, batch, attempt)
    fields |= {"refused": 0, "counters": {}, "files": files}
    return Commit(batch, attempt, **(fields | more))


def write(folder: Path, rows: int, name: str = "part-0") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"a": list(range(rows))}), folder / f"{name}.parquet")


def test_a_pin_never_changes(outbox: Outbox) -> None:
    first = outbox.pin(0, 7, 100, "abc")
    assert outbox.pin(0, 8, 200, "def") == first == outbox.read_pin(0)
    assert Outbox(outbox.path).read_pin(0) == first
    assert outbox.read_pin(1) is None


def test_commits_follow_each_other(outbox: Outbox) -> None:
    assert outbox.last() is None
    with pytest.raises(TidingsError, match="found batch 1, expected batch 0"):
        outbox.commit(commit(1))
    outbox.commit(commit(0))
    for wrong in (0, 2):
        with pytest.raises(TidingsError, match="expected batch 1"):
            outbox.commit(commit(wrong, "b"))
    outbox.commit(commit(1))
    assert outbox.commits() == [0, 1]
    found = outbox.read_commit(0)
    assert found is not None
    assert found.attempt == "a"


def test_a_commit_that_failed_and_is_there_is_not_written_again(
    outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    outbox.commit(commit(0))

    def fail(*_: object, **__: object) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(EndMarkFile, "write", fail)
        patch.setattr(os, "ftruncate", fail)
        with pytest.raises(EnvironmentProblem, match="must be opened again"):
            outbox.commit(commit(1))
    with pytest.raises(TidingsError, match="found batch 1, expected batch 2"):
        outbox.commit(commit(1, "b"))
    outbox.commit(commit(2))
    again = Outbox(outbox.path)
    assert [(one.batch, one.attempt) for one in again.log.each()] == [(0, "a"), (1, "a"), (2, "a")]
    assert not again.log.problems()


def test_a_commit_needs_the_rows_that_it_speaks_of(outbox: Outbox) -> None:
    write(outbox.folder(0, "a"), 3)
    write(outbox.dead_folder(0, "a"), 1)
    for matched, refused in ((4, 1), (3, 0), (0, 1)):
        with pytest.raises(TidingsError, match="the batch is not committed"):
            outbox.commit(commit(0, outbox=outbox, matched=matched, refused=refused))
    right = commit(0, outbox=outbox, matched=3, refused=1)
    path = outbox.path / right.files[0].path
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    with pytest.raises(TidingsError, match=r"bytes, expected .*; the batch is not committed"):
        outbox.commit(right)
    path.unlink()
    with pytest.raises(TidingsError, match="is missing; the batch is not committed"):
        outbox.commit(right)
    path.write_bytes(whole)
    outbox.commit(right)
    assert [*outbox.folders()] == [outbox.folder(0, "a")]
    assert [*outbox.dead_folders()] == [outbox.dead_folder(0, "a")]


def test_counters_come_from_the_last_ones_kept_and_the_commits_since(
    outbox: Outbox, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(module, "COUNTERS_EVERY", 5)
    chance = random.Random(seed)
    expected: dict[int, int] = {}
    for batch in range(23):
        new = {node: expected.get(node, 0) + chance.randrange(1, 9) for node in (0, batch % 4)}
        outbox.commit(commit(batch, counters=new))
        assert Outbox(outbox.path).counters() == expected | new  # stopped before they are kept
        expected |= new
        outbox.keep_counters(batch, expected)
        assert Outbox(outbox.path).counters() == expected
    kept = sorted(path.name for path in (outbox.home / "counters").iterdir())
    assert kept == ["00000015.json", "00000020.json"]
    # those after the last commit are of no use: a machine may lose the one and not the other
    outbox.keep_counters(25, {0: 10**6})
    assert outbox.counters() == expected


def test_files_that_were_not_finished_are_passed_over(outbox: Outbox) -> None:
    outbox.pin(0, 1, 1)
    outbox.commit(commit(0, counters={0: 1}))
    for kind in ("pins", "counters"):
        (outbox.home / kind).mkdir(exist_ok=True)
        (outbox.home / kind / ".00000001.json.0123abcd").write_text('{"ba')
    assert outbox.commits() == [0]
    assert outbox.read_pin(1) is None
    assert outbox.counters() == {0: 1}
    assert outbox.pin(1, 2, 2).version == 2
    outbox.commit(commit(1))


def test_a_damaged_file_is_named(outbox: Outbox) -> None:
    outbox.pin(0, 1, 2)
    path = outbox.pin_path(0)
    whole = path.read_bytes()
    for wrong in (whole[:-5], whole.replace(b'"version":1', b'"version":7'), b"", b"{}"):
        path.write_bytes(wrong)
        with pytest.raises(TidingsError, match=r"00000000\.json of the outbox was altered"):
            outbox.read_pin(0)
    # counters that were altered are had from the commits
    outbox.commit(commit(0, counters={0: 4}))
    outbox.keep_counters(0, {0: 4})
    kept = outbox.home / "counters" / "00000000.json"
    kept.write_bytes(kept.read_bytes().replace(b'"0":4', b'"0":3'))
    assert outbox.counters() == {0: 4}


def test_files_of_an_attempt_are_moved_when_they_are_named(outbox: Outbox) -> None:
    names = {outbox.begin_attempt(3) for _ in range(20)}
    assert len(names) == 20
    attempt = names.pop()
    work = outbox.work_folder(3, attempt)
    for name in ("one", "two", "twice", "bad"):
        write(work, 2, name)
    rows = [
        describe_file(work / "one.parquet", "grain=1", 2),
        describe_file(work / "two.parquet", "grain=2", 2),
    ]
    placed = outbox.place(3, attempt, rows, [describe_file(work / "bad.parquet", "", 2)])
    outbox.drop_work(3, attempt)
    assert sorted(placed, key=str) == sorted(files_of(outbox, 3, attempt), key=str)
    assert not work.exists()
    there = sorted(str(path.relative_to(outbox.path)) for path in outbox.path.rglob("*.parquet"))
    assert there == [
        f"data/00000003-{attempt}/grain=1/one.parquet",
        f"data/00000003-{attempt}/grain=2/two.parquet",
        f"dead/00000003-{attempt}/bad.parquet",
    ]


def test_an_outbox_belongs_to_one_checkpoint(outbox: Outbox, tmp_path: Path) -> None:
    mine, other = tmp_path / "mine", tmp_path / "other"
    for checkpoint in (mine, other):
        (checkpoint / "commits").mkdir(parents=True)
    stream = outbox.bind_to_checkpoint(mine)
    assert outbox.bind_to_checkpoint(mine) == stream
    assert Outbox(tmp_path / "second").bind_to_checkpoint(other) != stream
    with pytest.raises(TidingsError, match="belongs to another checkpoint"):
        outbox.bind_to_checkpoint(other)
    with pytest.raises(TidingsError, match="belongs to another checkpoint"):
        outbox.bind_to_checkpoint(tmp_path / "new")
    # stopped between the two writings: the checkpoint has the name, the outbox not yet
    (outbox.home / "stream").unlink()
    assert outbox.bind_to_checkpoint(mine) == stream
    # an outbox that was emptied after batches were done can't go on
    (outbox.home / "stream").unlink()
    (mine / "commits" / "0").touch()
    with pytest.raises(TidingsError, match="belongs to another checkpoint"):
        outbox.bind_to_checkpoint(mine)


HOLDER = """
import sys, time
from tidings.spark.outbox.outbox import Outbox
lock = Outbox(sys.argv[1]).take_lock()
print("held", flush=True)
time.sleep(60)
"""


def test_one_process_writes_at_a_time(outbox: Outbox) -> None:
    with (
        outbox.hold_lock(),
        pytest.raises(TidingsError, match="another pipeline writes"),
        outbox.hold_lock(),
    ):
        pass
    command = [sys.executable, "-c", HOLDER, str(outbox.path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(TidingsError, match="another pipeline writes"), outbox.hold_lock():
            pass
        other.kill()
    os.close(outbox.take_lock())  # a process that was killed has let go
