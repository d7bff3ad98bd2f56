"""A directory of Arrow files with a manifest: written whole or not at all, mapped when it is read.

    manifest.json    format, version, whatever the owner notes, size and digest of every file
    NAME.arrow       a table each

Files are written to a new directory that then takes the place of the old one, which goes:

    .NAME.x          written to ──────────────┐ second rename
    NAME             the snapshot ─┐ first    └─> NAME
    .NAME.old.y/snapshot  <────────┘              and then this one is removed

Between the two renames there is none at the path, for a moment or, if the process was killed just
then, until the next save; who opens it takes the old one, which is whole. Files are opened one
after the other, so a reader looks afterwards whether it is still the same directory, and otherwise
begins anew. Every process that opens it maps the same pages, once their digests were compared
(manifest.py): kernels follow the offsets in them without a look.

Files say who wants what, so they are made for their owner alone.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from tidings.files import make_folder, make_private
from tidings.matching.disk.manifest import MANIFEST, SnapshotError
from tidings.model import TidingsError

ASIDE = "snapshot"  # the name of a snapshot that was moved aside, in a folder of its own
TRIES = 20  # at a snapshot that is replaced while it is opened
Made = TypeVar("Made")


def need_place(path: Path) -> None:
    """SnapshotError where something is that is not a snapshot."""
    if path.exists() and not (path / MANIFEST).exists():
        raise SnapshotError(f"'{path}' is there and is not a snapshot; it is left alone")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A new directory to write to; at the end of the block it takes the place of the path."""
    make_folder(path.parent)
    need_place(path)
    folder = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    try:
        yield folder
        _take_place(folder, path)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def read_whole(path: Path, read: Callable[[Path], Made]) -> Made:
    """What `read` makes of the snapshot at a path, all of it from one and the same."""
    for _ in range(TRIES):
        folder = _standing(path)
        before = _identity(folder)
        try:
            found = read(folder)
        except Exception as problem:
            now = _identity(folder if before is not None else _standing(path))
            if now != before:
                continue
            if isinstance(problem, TidingsError | OSError | MemoryError):
                raise
            # digests agree, so it was written like this: by the format before, whose manifest has
            # no digest of its own, or by a program that was not well
            raise SnapshotError(
                f"snapshot '{path}' can't be read: {type(problem).__name__}: {problem}; "
                f"build it anew"
            ) from problem
        if before is not None and _identity(folder) == before:
            return found
    raise SnapshotError(f"snapshot '{path}' was replaced again and again while it was opened")


def _standing(path: Path) -> Path:
    """Where the snapshot of a path is: there, or aside if it is just being replaced."""
    if not path.exists():
        for found in _asides(path):
            if (found / ASIDE / MANIFEST).exists():
                return found / ASIDE
    return path


def _asides(path: Path) -> list[Path]:
    """The folders that snapshots of a path were moved to, the last one first."""
    try:
        found = [one for one in path.parent.iterdir() if one.name.startswith(_aside_prefix(path))]
        return sorted(found, key=lambda one: one.stat().st_mtime_ns, reverse=True)
    except OSError:  # one went just now, or there is no folder at all
        return []


def _aside_prefix(path: Path) -> str:
    return f".{path.name}.old."


def _identity(folder: Path) -> tuple[Any, ...] | None:
    """What two snapshots never share; None if there is none."""
    try:
        of_folder, of_file = folder.stat(), (folder / MANIFEST).stat()
        raw = (folder / MANIFEST).read_bytes()
    except OSError:
        return None
    return of_folder.st_dev, of_folder.st_ino, of_file.st_ino, of_file.st_mtime_ns, raw


def write_table(path: Path, columns: Mapping[str, Any]) -> None:
    """Write one file, of one record batch."""
    table = pa.table(dict(columns))
    make_private(path)
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=max(1, table.num_rows))
    _sync(path)


def read_table(path: Path) -> Any:
    """A file as a table that is mapped into memory."""
    try:
        return pa.ipc.open_file(pa.memory_map(str(path))).read_all().combine_chunks()
    except (pa.ArrowInvalid, OSError) as problem:
        raise SnapshotError(f"snapshot file '{path}' can't be read: {problem}") from None


def as_array(column: Any) -> Any:
    """A column of numbers as an array over the same memory."""
    return column.chunk(0).to_numpy() if column.num_chunks else np.asarray(column)


def _take_place(folder: Path, path: Path) -> None:
    if path.exists():
        folder.chmod(path.stat().st_mode & 0o777)  # it may have been opened to others on purpose
        aside = Path(tempfile.mkdtemp(prefix=_aside_prefix(path), dir=path.parent)) / ASIDE
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
    _sync(path.parent)
    for old in _asides(path):  # this one, and what a process left that was killed
        shutil.rmtree(old, ignore_errors=True)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
