"""A folder that is replaced whole: whoever opens it finds the old one or the new one.

Files are written to a new folder that then takes the place of the old one, which is removed:

    .NAME.x          written to ──────────────┐ second rename
    NAME             the old folder ─┐ first  └─> NAME
    .NAME.old.y/snapshot  <──────────┘            and then this one is removed

Between the two renames nothing is at the path: for a moment or, if the process was killed just
then, until the next replacement. Whoever opens it then takes the old one, which is whole. Readers
open its files one after the other, so they compare `folder_identity` before and after.

A folder counts as whole when a file is in it that is written last, its *mark*.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tidings.files.durable import sync
from tidings.files.private import make_folder

_ASIDE = "snapshot"  # the name of a folder that was moved aside, in a folder of its own


@contextmanager
def replacing_folder(path: Path) -> Iterator[Path]:
    """A new folder to write to; at the end of the block it takes the place of the path."""
    make_folder(path.parent)
    folder = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    try:
        yield folder
        _take_place(folder, path)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def current_folder(path: Path, mark: str) -> Path:
    """Where the folder of a path is: there, or aside while it is being replaced."""
    if not path.exists():
        for found in _asides(path):
            if (found / _ASIDE / mark).exists():
                return found / _ASIDE
    return path


def folder_identity(folder: Path, mark: str) -> tuple[Any, ...] | None:
    """What two folders never share; None where there is none with its mark."""
    try:
        of_folder, of_file = folder.stat(), (folder / mark).stat()
        raw = (folder / mark).read_bytes()
    except OSError:
        return None
    return of_folder.st_dev, of_folder.st_ino, of_file.st_ino, of_file.st_mtime_ns, raw


def _asides(path: Path) -> list[Path]:
    """The folders that old ones of a path were moved to, the last one first."""
    found = []
    with suppress(OSError):  # there is no folder at all
        for one in path.parent.iterdir():
            if one.name.startswith(_aside_prefix(path)):
                with suppress(OSError):  # it went just now
                    found.append((one.stat().st_mtime_ns, one))
    return [one for _, one in sorted(found, reverse=True)]


def _aside_prefix(path: Path) -> str:
    return f".{path.name}.old."


def _take_place(folder: Path, path: Path) -> None:
    if path.exists():
        folder.chmod(path.stat().st_mode & 0o777)  # it may have been opened to others on purpose
        aside = Path(tempfile.mkdtemp(prefix=_aside_prefix(path), dir=path.parent)) / _ASIDE
        try:
            path.rename(aside)
            folder.rename(path)
        except BaseException:  # also when the user interrupts: one of the two has to be there
            if aside.exists() and not path.exists():
                aside.rename(path)
            raise
        finally:
            if not aside.exists():
                aside.parent.rmdir()
    else:
        folder.rename(path)
    sync(path.parent)
    for old in _asides(path):  # this one, and what a killed process left
        shutil.rmtree(old, ignore_errors=True)
