"""The user's cache folder, for data that can be rebuilt or fetched again.

The package platformdirs is not used. If Spark executors receive tidings with a job, they have only
the packages that the kernels need, and these few lines of code do not justify another package.
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
    """The path of a folder in the user's cache folder; the folder is not created. On Linux, the
    cache folder is XDG_CACHE_HOME if that variable is set, otherwise ~/.cache."""
    if sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    elif sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(base, "tidings", *names)


def open_cache_folder(folder: Path, names: str, kept: float) -> None:
    """Create a cache folder; if it exists, mark it as recently used. Whenever a folder is created,
    its sibling folders are removed if they match the pattern `names` and nobody has used them for
    `kept` seconds.

    Errors are ignored, because a cache is optional.
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
    """Copy the files that match the pattern `names` to a cache folder, unless it already has them.
    Errors are ignored."""
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        for file in source.glob(names):
            if not (folder / file.name).exists():
                with placing(folder / file.name) as beside:
                    shutil.copyfile(file, beside)
