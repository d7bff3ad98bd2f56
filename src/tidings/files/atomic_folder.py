"""A folder that is replaced as a whole: readers find either the old folder or the new one.

Files are written to a new folder that replaces the old one, which is then removed:

    .NAME.x          the new folder ──────────┐ second rename
    NAME             the old folder ─┐ first  └─> NAME
    .NAME.old.y/snapshot  <──────────┘            removed last

Between the two renames the path does not exist. Usually the path is missing only for a moment; if
the process is killed at that moment, the path is missing until the next replacement. Readers then
use the old folder, which is complete. Readers open the files one after another, so they compare
`folder_identity` from before and after, to detect whether the folder was replaced in between.

A folder is complete once it contains its *mark*, the file that is written last.

If all processes would write the same files, use `filling_folder`: no process then replaces the
folder of another.
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

_ASIDE = "snapshot"  # the name to which the old folder is moved, inside a new folder


@contextmanager
def replacing_folder(path: Path) -> Iterator[Path]:
    """A new folder to write to; at the end of the block it replaces the folder at the path."""
    make_folder(path.parent)
    folder = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    try:
        yield folder
        _take_place(folder, path)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


@contextmanager
def filling_folder(path: Path) -> Iterator[Path]:
    """A temporary path at which the block makes a folder; at the end of the block the folder is
    moved to `path`. If another process was first, the folder of that process stays, and the folder
    that this block made is removed."""
    make_folder(path.parent)
    scratch = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    try:
        yield scratch / path.name
        try:
            (scratch / path.name).rename(path)
        except OSError:
            if not path.is_dir():
                raise
        sync(path.parent)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def current_folder(path: Path, mark: str) -> Path:
    """The folder to read: the path itself, or the old folder while it is being replaced."""
    if not path.exists():
        for found in _asides(path):
            if (found / _ASIDE / mark).exists():
                return found / _ASIDE
    return path


def folder_identity(folder: Path, mark: str) -> tuple[Any, ...] | None:
    """A value that differs between any two folders; None if there is no complete folder."""
    try:
        of_folder, of_file = folder.stat(), (folder / mark).stat()
        raw = (folder / mark).read_bytes()
    except OSError:
        return None
    return of_folder.st_dev, of_folder.st_ino, of_file.st_ino, of_file.st_mtime_ns, raw


def _asides(path: Path) -> list[Path]:
    """The folders that hold old versions of a path, the latest first."""
    found = []
    with suppress(OSError):  # the parent folder does not exist
        for one in path.parent.iterdir():
            if one.name.startswith(_aside_prefix(path)):
                with suppress(OSError):  # the folder was removed a moment ago
                    found.append((one.stat().st_mtime_ns, one))
    return [one for _, one in sorted(found, reverse=True)]


def _aside_prefix(path: Path) -> str:
    return f".{path.name}.old."


def _take_place(folder: Path, path: Path) -> None:
    if path.exists():
        # the old folder may be readable by others on purpose
        folder.chmod(path.stat().st_mode & 0o777)
        aside = Path(tempfile.mkdtemp(prefix=_aside_prefix(path), dir=path.parent)) / _ASIDE
        try:
            path.rename(aside)
            folder.rename(path)
        except BaseException:  # even after Ctrl-C, the path must hold one of the two folders
            if aside.exists() and not path.exists():
                aside.rename(path)
            raise
        finally:
            if not aside.exists():
                aside.parent.rmdir()
    else:
        folder.rename(path)
    sync(path.parent)
    for old in _asides(path):  # the replaced folder, and any that killed processes left
        shutil.rmtree(old, ignore_errors=True)
