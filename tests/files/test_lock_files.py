"""One holder at a time, whether threads or processes, or many that share."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tidings.files import hold_lock, release_lock, share_lock, take_lock, try_lock


def test_a_lock_that_is_taken_is_refused_until_it_is_released(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    handle = take_lock(path)
    with pytest.raises(BlockingIOError):
        take_lock(path)
    with try_lock(path) as alone:
        assert not alone
    release_lock(handle)
    with try_lock(path) as alone:
        assert alone
        with pytest.raises(BlockingIOError):
            take_lock(path)
    release_lock(take_lock(path))


def test_nothing_is_left_open_where_a_lock_is_refused(tmp_path: Path) -> None:
    handle = take_lock(tmp_path / "lock")
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(5):
        with pytest.raises(BlockingIOError):
            take_lock(tmp_path / "lock")
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    release_lock(handle)


def test_a_file_that_can_not_be_opened_is_another_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        take_lock(tmp_path / "missing" / "lock")


def test_readers_share_and_keep_a_writer_waiting(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with hold_lock(path):
        pass
    got = threading.Event()

    def write() -> None:
        with hold_lock(path):
            got.set()

    with share_lock(path), share_lock(path):
        writer = threading.Thread(target=write)
        writer.start()
        assert not got.wait(0.05)
    assert got.wait(30)
    writer.join()


def test_a_process_that_dies_lets_go(tmp_path: Path) -> None:
    program = (
        "import sys, time, pathlib; from tidings.files import take_lock; "
        "take_lock(sys.argv[1]); print('held', flush=True); time.sleep(600)"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path / "lock")], stdout=subprocess.PIPE
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    with pytest.raises(BlockingIOError):
        take_lock(tmp_path / "lock")
    holder.kill()
    holder.communicate()
    release_lock(take_lock(tmp_path / "lock"))


def test_a_released_lock_is_free_though_a_child_has_the_file_open(tmp_path: Path) -> None:
    handle = take_lock(tmp_path / "lock")
    child = os.dup(handle)  # what a forked process has of it
    release_lock(handle)
    release_lock(take_lock(tmp_path / "lock"))
    os.close(child)
