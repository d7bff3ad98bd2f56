"""Folders for temporary files that outlive the call that makes them.

    /tmp/tidings-UID/         of one user, who alone can access it
        lock                  held while the folder of a process is made
        process-PID-x/        of one process, which holds its `lock` as long as it runs
        snapshots/ ...        used by all processes of the user

A process that is killed leaves its folder behind, and the next process that makes such a folder
removes the old one. The lock shows whether a process still runs; the process id does not, because
ids are reused.
"""

from __future__ import annotations

import atexit
import os
import shutil
import stat
import tempfile
import threading
from contextlib import suppress
from pathlib import Path

from tidings.files.lock_files import hold_lock, take_lock, try_lock
from tidings.files.private import FOLDER

LOCK = "lock"
_making = threading.Lock()
_mine: dict[int, Path] = {}  # process id -> folder; a forked process makes a folder of its own


def user_temporary_folder() -> Path:
    """The folder of this user. If a folder of that name belongs to another user, or others can
    access it, a new folder is made, because others could change the contents of the existing
    folder."""
    user = os.getuid()
    folder = Path(tempfile.gettempdir(), f"tidings-{user}")
    with suppress(FileExistsError):
        folder.mkdir(FOLDER)
    found = folder.lstat()
    if stat.S_ISDIR(found.st_mode) and found.st_uid == user and not found.st_mode & 0o077:
        return folder
    return Path(tempfile.mkdtemp(prefix=f"tidings-{user}-"))


def process_folder() -> Path:
    """The folder of this process. The folder is removed when the process ends; if the process is
    killed, another process removes it later."""
    process = os.getpid()
    with _making:
        if process not in _mine or not _mine[process].exists():
            home = user_temporary_folder()
            with hold_lock(home / LOCK):
                _remove_left(home)
                folder = Path(tempfile.mkdtemp(prefix=f"process-{process}-", dir=home))
                take_lock(folder / LOCK)  # held until the process ends
            atexit.register(_remove, folder, process)
            _mine[process] = folder
        return _mine[process]


def _remove_left(home: Path) -> None:
    """Remove the folders of processes that have ended."""
    for folder in home.glob("process-*"):
        try:
            with try_lock(folder / LOCK) as is_free:
                is_left = is_free
        except OSError:  # the process was killed while it made or removed the folder
            is_left = True
        if is_left:
            shutil.rmtree(folder, ignore_errors=True)


def _remove(folder: Path, process: int) -> None:
    if os.getpid() == process:  # in all other cases, this is a forked process
        shutil.rmtree(folder, ignore_errors=True)
