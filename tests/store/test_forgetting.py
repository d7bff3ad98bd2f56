"""Dropping old segments: what is kept, and being interrupted at every step."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.store.cuts import Cut, cut_at

from tidings.store import ChangeLog


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
