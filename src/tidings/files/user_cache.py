"""The user's cache folder, for what can be made or fetched again.

The package platformdirs finds it as well, but executors that get tidings along with a job have only
what the kernels need, and would need one package more for these lines; so it is not used.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sys
from pathlib import Path

from tidings.files.durable import placing


def user_cache_folder(*names: str) -> Path:
    """A folder in the cache folder of the user; it is not made. On Linux that is in XDG_CACHE_HOME,
    else in ~/.cache."""
    if sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    elif sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(base, "tidings", *names)


def open_cache_folder(folder: Path, names: str, kept: float) -> None:
    """Make a folder, or note that it is in use. A new one removes those beside it whose names match
    the pattern `names` and that nobody has used for `kept` seconds.

    Silent where nothing can be written: a cache is never needed.
    """
    with contextlib.suppress(OSError):
        if folder.exists():
            os.utime(folder)
            return
        folder.mkdir(parents=True)
        oldest = folder.stat().st_mtime - kept
        for other in folder.parent.iterdir():
            if re.fullmatch(names, other.name) and other.stat().st_mtime < oldest:
                shutil.rmtree(other, ignore_errors=True)


def copy_missing(source: Path, names: str, folder: Path) -> None:
    """Copy the files that match the pattern `names` to a cache folder, but for those that are there
    already. Silent where nothing can be written."""
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        for file in source.glob(names):
            if not (folder / file.name).exists():
                with placing(folder / file.name) as beside:
                    shutil.copyfile(file, beside)
