"""What the rooms write of subscriptions and payloads is for its owner alone."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tidings.snapshots import Snapshot
from tidings.spark.feeds.feed_spool import Spool
from tidings.spark.outbox.outbox import Outbox
from tidings.store import ChangeLog


@pytest.fixture(autouse=True)
def _usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def open_to_others(folder: Path) -> dict[str, str]:
    """What others may do anything with, with its mode."""
    found = {one: stat.S_IMODE(one.stat().st_mode) for one in (folder, *folder.rglob("*"))}
    assert len(found) > 1, "there is nothing in it"
    return {str(one): f"{mode:04o}" for one, mode in found.items() if mode & 0o077}


def test_a_log_of_changes(tmp_path: Path) -> None:
    log = ChangeLog(tmp_path / "new" / "log", segment_bytes=64)
    for number in range(20):
        log.put(f"subscriber {number}", f"n > {number}")
    log.forget_before(10)
    log.put("last", "n > 3")
    assert open_to_others(tmp_path / "new") == {}


def test_a_snapshot(tmp_path: Path) -> None:
    Snapshot.build({"late": "dep_delay > 60", "late too": "dep_delay > 90"}).save(
        tmp_path / "new" / "snapshot"
    )
    assert open_to_others(tmp_path / "new") == {}


def test_an_outbox(tmp_path: Path) -> None:
    """Its folders and its own files; what workers write there is looked at in test_endings."""
    outbox = Outbox(tmp_path / "new" / "outbox")
    with outbox.hold_lock():
        outbox.bind_to_checkpoint(tmp_path / "new" / "checkpoint")
        outbox.begin_attempt(0)
    assert open_to_others(tmp_path / "new") == {}


def test_a_spool(tmp_path: Path) -> None:
    Spool(tmp_path / "new" / "spool", "owner").close()
    assert open_to_others(tmp_path / "new") == {}
