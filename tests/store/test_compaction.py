"""Dropping old segments: what is kept, and being interrupted at every step."""

from __future__ import annotations

import logging
import os
import time
from pathlib import Path

import pytest
from tests.store.cuts import Cut, cut_at

from tidings.store import ChangeLog, LogError, compaction


def filled(folder: Path) -> ChangeLog:
    log = ChangeLog(folder, segment_bytes=150)
    for n in range(5):
        log.put_many([(f"{n}", f"a = {n}"), ("x", f"a = {n + 1}")])
    log.drop("0")
    return log


def segments_of(log: ChangeLog) -> list[str]:
    return sorted(path.name for path in log.path.rglob("0*.log"))


@pytest.mark.parametrize("version", [6, 11])
def test_interrupted_at_every_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: int
) -> None:
    whole = filled(tmp_path / "whole")
    expected = whole.subscriptions()
    done = filled(tmp_path / "done")
    done.forget_before(version)
    assert not set(segments_of(done)) >= set(segments_of(whole))
    for call in range(100):
        log = filled(tmp_path / f"{call}")
        with monkeypatch.context() as patch:
            cut_at(call, patch)
            try:
                log.forget_before(version)
                break
            except Cut:
                pass
        for one in (log, ChangeLog(log.path)):
            assert one.version == 11
            assert one.subscriptions(version) == whole.subscriptions(version)
            assert one.changes(version) == whole.changes(version)
        log.forget_before(version)
        assert segments_of(log) == segments_of(done)
        assert ChangeLog(log.path).put("new", "a = 2") == 12
        assert log.subscriptions() == expected | {"new": ("a = 2", 4)}
    assert 4 <= call < 99


def test_writing_that_is_interrupted_at_every_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for call in range(100):
        log = ChangeLog(tmp_path / f"{call}")
        with monkeypatch.context() as patch:
            cut_at(call, patch)
            try:
                log.put_many([("x", "a = 1"), ("y", "a = 2")])
                break
            except Cut:
                pass
        there = ChangeLog(log.path).version
        assert there in {0, 2}  # nobody was told; it may be there, whole
        assert log.put("z", "a = 2") == there + 1
        assert ChangeLog(log.path).subscriptions() == log.subscriptions()
        assert [change.node for change in log.changes(0)] == ([1, 2, 2] if there else [1])
    assert 1 <= call < 99


def test_a_version_that_was_forgotten_already(tmp_path: Path) -> None:
    log = filled(tmp_path)
    log.forget_before(9)
    before = sorted(path.name for path in tmp_path.rglob("*"))
    log.forget_before(0)
    log.forget_before(4)
    assert sorted(path.name for path in tmp_path.rglob("*")) == before
    assert log.subscriptions(9)["x"] == ("a = 4", 8)


def test_filters_that_come_back_have_new_nodes_also_after_their_segments_went(
    tmp_path: Path,
) -> None:
    log = ChangeLog(tmp_path)
    log.put("x", "a = 1")
    log.put("x", "a = 2")
    log.drop("x")
    log.forget_before(3)
    assert [path.stat().st_size < 120 for path in tmp_path.rglob("*.log")] == [True]
    assert log.subscriptions() == {}
    log = ChangeLog(tmp_path)
    assert log.put_many([("x", "a = 3"), ("y", "a = 2"), ("z", "a = 1")]) == 6
    assert [change.node for change in log.changes(3)] == [4, 5, 6]


def make_older(log: ChangeLog, names: list[str]) -> None:
    """Let files look as if nobody had written to them for longer than they are kept."""
    moment = time.time() - compaction.KEPT_SECONDS - 60
    for name in names:
        os.utime(log.path / name, (moment, moment))


def begin_file(log: ChangeLog) -> int:
    """Make changes until one of them begins a new file; return the last version."""
    last = segments_of(log)[-1]
    while segments_of(log)[-1] == last:
        version = log.put_many([("y", "a = 7"), ("z", "a = 8")])
    return version


@pytest.mark.parametrize("owned", [False, True])
def test_who_begins_a_file_drops_those_that_are_old(tmp_path: Path, owned: bool) -> None:
    log, twin = filled(tmp_path / "log"), filled(tmp_path / "twin")
    before = segments_of(log)
    assert len(before) > 3
    if owned:
        assert log.own()
    reader = ChangeLog(log.path)
    assert len(reader.changes(0)) == 11
    make_older(log, before[:2])
    assert begin_file(log) == begin_file(twin)
    assert segments_of(log)[: len(before) - 2] == before[2:]
    with pytest.raises(LogError, match="dropped"):
        log.changes(0)
    for one in (log, reader, ChangeLog(log.path)):
        assert one.subscriptions() == twin.subscriptions()
        assert one.changes(10) == twin.changes(10)
    log.close()


def test_nothing_is_dropped_before_its_time(tmp_path: Path) -> None:
    log = filled(tmp_path)
    before = segments_of(log)
    make_older(log, before[1:])  # the oldest was written to lately, say, restored
    version = begin_file(log)
    assert segments_of(log)[: len(before)] == before
    assert len(log.changes(0)) == version


def test_the_last_file_stays_though_all_are_old(tmp_path: Path) -> None:
    log, twin = filled(tmp_path / "log"), filled(tmp_path / "twin")
    make_older(log, segments_of(log))
    assert compaction.last_version_before(log.path, time.time() - compaction.KEPT_SECONDS) == 10
    version = begin_file(log)
    assert version == begin_file(twin)
    assert log.subscriptions() == twin.subscriptions()
    assert ChangeLog(log.path).put("z", "a = 8") == version + 1


def test_a_change_is_made_though_old_files_cannot_be_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    log = filled(tmp_path)
    make_older(log, segments_of(log)[:2])

    def refuse(*_: object) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr("tidings.store.journal.checkpoint.write", refuse)
    with caplog.at_level(logging.WARNING):
        version = begin_file(log)
    assert "can't drop old files: the disk is full" in caplog.text
    assert len(ChangeLog(log.path).changes(0)) == version
