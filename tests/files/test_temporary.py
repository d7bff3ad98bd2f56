"""Temporary folders: of the user, and of each process, also after one was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tidings.files import process_folder, user_temporary_folder
from tidings.snapshots import Snapshot
from tidings.spark.tagging.tagging import place_snapshot

MAKE = "from tidings.files import process_folder; print(process_folder(), flush=True); input()"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path / f"tidings-{os.getuid()}"


def start() -> tuple[subprocess.Popen[str], Path]:
    process = subprocess.Popen(
        [sys.executable, "-c", MAKE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_folders_of_processes(home: Path) -> None:
    ended, first = start()
    killed, second = start()
    running, third = start()
    folders = {first, second, third}
    assert {one for one in home.iterdir() if one.is_dir()} == folders
    assert all(one.stat().st_mode & 0o777 == 0o700 for one in (home, *folders))
    ended.communicate("\n")
    assert not first.exists()
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    assert second.exists()
    (home / "process-1-made").mkdir()  # killed before it had a lock
    last, fourth = start()
    assert {one for one in home.iterdir() if one.is_dir()} == {third, fourth}
    for process in (running, last):
        process.communicate("\n")
    assert [*home.iterdir()] == [home / "lock"]


@pytest.mark.parametrize("how", ["open", "link"])
def test_a_folder_that_others_can_change_is_not_used(home: Path, tmp_path: Path, how: str) -> None:
    if how == "open":
        home.mkdir()
        home.chmod(0o777)
    else:
        (tmp_path / "theirs").mkdir(0o700)
        home.symlink_to(tmp_path / "theirs")
    found = user_temporary_folder()
    assert found != home
    assert found.name.startswith(home.name)
    assert found.stat().st_mode & 0o777 == 0o700


def test_equal_snapshots_in_memory_share_a_folder(home: Path) -> None:
    """A loop that tags with the same subscriptions needs one folder, and leaves nothing else."""
    before = {one.name for one in process_folder().iterdir()}  # other tests of this process
    places = {place_snapshot(Snapshot.build({"a": "x > 1"}), None)[1] for _ in range(3)}
    (place,) = map(Path, places)
    assert sorted(Snapshot.open(place).nodes_by_id()) == ["a"]
    assert place.parent == process_folder()
    assert {one.name for one in place.parent.iterdir()} == before | {"lock", place.name}
    assert place_snapshot(Snapshot.build({"a": "x > 2"}), None)[1] not in places
