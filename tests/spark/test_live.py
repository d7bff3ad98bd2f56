"""Subscriptions that a stream follows: any version that a batch was begun with can be had again."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tidings.snapshots import Snapshot
from tidings.spark import live
from tidings.spark.live import Followed, compile_version
from tidings.spark.worker import view_of
from tidings.store import ChangeLog, LogError


@pytest.fixture
def log(tmp_path: Path) -> ChangeLog:
    return ChangeLog(tmp_path / "log", segment_bytes=200)


def grow(log: ChangeLog, upto: int) -> None:
    for number in range(log.version + 1, upto + 1):
        log.put(f"s{number % 7}", f"price > {number}")


def members(followed: Followed, version: int) -> list[str]:
    view = view_of(followed.pinned(version))
    return sorted(view.ids.to_pylist())


def test_a_batch_goes_on_when_the_log_forgot_the_changes_since_the_snapshot(log: ChangeLog) -> None:
    grow(log, 3)
    followed = Followed(log.path)
    grow(log, 40)
    log.forget_before(30)
    with pytest.raises(LogError):
        log.changes(3, 35)
    assert members(followed, 35) == sorted(map(str, log.subscriptions(35)))
    assert followed.pinned(35).changes == ()
    assert [c.version for c in followed.pinned(37).changes] == [36, 37]


def test_a_version_that_the_log_forgot_is_had_from_its_snapshot_or_not_at_all(
    log: ChangeLog,
) -> None:
    grow(log, 3)
    followed = Followed(log.path)
    before = members(followed, 3)
    grow(log, 40)
    log.forget_before(30)
    assert members(followed, 3) == before
    for version in (2, 20):
        with pytest.raises(LogError, match="was forgotten"):
            followed.pinned(version)


def test_the_snapshot_that_a_batch_begins_with_is_not_removed(
    log: ChangeLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch that is done again may need one that others have long left behind."""
    monkeypatch.setattr("tidings.spark.live.subprocess.Popen", lambda *_args, **_more: None)
    grow(log, 2)
    followed = Followed(log.path, rebuild_after=2)
    grow(log, 30)
    for version in (1, 10, 20, 25, 30):
        compile_version(log, version, followed.home)
    pinned = followed.pinned(5)
    assert Snapshot.open(pinned.path).number == 2
    assert [number for number in (1, 2, 10) if number in followed._compiled()] == [2, 10]


def test_a_snapshot_is_removed_at_one_stroke(
    log: ChangeLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidings.spark.live.subprocess.Popen", lambda *_args, **_more: None)
    # as if it was killed
    monkeypatch.setattr("tidings.spark.live.shutil.rmtree", lambda *_args, **_more: None)
    grow(log, 30)
    followed = Followed(log.path, rebuild_after=1)
    for version in (5, 10, 20):
        compile_version(log, version, followed.home)
    grow(log, 32)
    followed.pinned(32)
    assert followed._compiled() == [10, 20, 30]
    assert members(followed, 7) == sorted(map(str, log.subscriptions(7)))


def test_what_was_compiled_stays_when_it_is_compiled_again(
    log: ChangeLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    grow(log, 9)
    home = log.path / "snapshots"
    path = compile_version(log, 9, home)
    inode = path.stat().st_ino
    compile_version(log, 9, home)
    assert path.stat().st_ino == inode
    # two processes at once: both find none, the first one's stays
    exists = Path.exists
    looks = iter([False])
    monkeypatch.setattr(
        Path, "exists", lambda self: next(looks, True) if self == path else exists(self)
    )
    compile_version(log, 9, home)
    monkeypatch.undo()
    assert path.stat().st_ino == inode
    assert [one.name for one in home.iterdir()] == [path.name]


def test_what_dead_processes_left_goes_after_a_while(
    log: ChangeLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidings.spark.live.subprocess.Popen", lambda *_args, **_more: None)
    grow(log, 3)
    followed = Followed(log.path, rebuild_after=1)
    for name, age in ((".old", 2 * live.LEFT_OVER), (".new", 10.0)):
        folder = followed.home / name
        folder.mkdir()
        os.utime(folder, (time.time() - age,) * 2)
    grow(log, 5)
    followed.pinned(5)
    assert not (followed.home / ".old").exists()
    assert (followed.home / ".new").exists()


def test_a_compilation_of_its_own_process(log: ChangeLog) -> None:
    grow(log, 3)
    followed = Followed(log.path, rebuild_after=5)
    grow(log, 9)
    first = followed.pinned(9)
    assert len(first.changes) == 6
    followed.close()
    second = followed.pinned(9)
    assert second.changes == ()
    assert sorted(view_of(first).ids.to_pylist()) == sorted(view_of(second).ids.to_pylist())
