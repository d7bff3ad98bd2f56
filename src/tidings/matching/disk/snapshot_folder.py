"""A directory of Arrow files with a manifest, written atomically and mapped when it is read.

    manifest.json    format, version, notes, size and digest of every file
    NAME.arrow       one table per file

files/atomic_folder.py describes how the directory is replaced. Files are opened one after another,
so a reader checks afterwards that the directory is still the same, and otherwise starts again. All
processes that open the directory map the same pages. Processes check digests first (manifest.py),
because kernels do not check the offsets in the files.

The files reveal who subscribed to what, so only their owner can read them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from tidings.files import (
    current_folder,
    folder_identity,
    make_private,
    replacing_folder,
    sync,
)
from tidings.matching.disk.manifest import MANIFEST, SnapshotError, UnreadableSnapshot
from tidings.model import TidingsError

TRIES = 20  # the most attempts to open a snapshot that is being replaced
Made = TypeVar("Made")


def need_place(path: Path) -> None:
    """Raise SnapshotError if the path exists but is not a snapshot."""
    if path.exists() and not (path / MANIFEST).exists():
        raise SnapshotError(f"'{path}' exists but is not a snapshot; it was not replaced")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A new directory to write to; at the end of the block it replaces the one at `path`."""
    need_place(path)
    with replacing_folder(path) as folder:
        yield folder


def read_whole(path: Path, read: Callable[[Path], Made]) -> Made:
    """Call `read` on the snapshot at a path; call it again if the snapshot was replaced in the
    meantime. So the result comes from a single snapshot."""
    for _ in range(TRIES):
        folder = current_folder(path, MANIFEST)
        before = folder_identity(folder, MANIFEST)
        try:
            found = read(folder)
        except Exception as problem:
            # the files of a replaced snapshot are deleted one by one, and the manifest may be the
            # last
            now = current_folder(path, MANIFEST)
            if now != folder or folder_identity(now, MANIFEST) != before:
                continue
            if isinstance(problem, TidingsError | OSError | MemoryError):
                raise
            # The digests agree, so the files have not changed since they were written: either a
            # faulty program wrote them, or they have the oldest format, whose manifest has no
            # digest of its own.
            raise SnapshotError(
                f"snapshot '{path}' can't be read: {type(problem).__name__}: {problem}; rebuild it"
            ) from problem
        if before is not None and folder_identity(folder, MANIFEST) == before:
            return found
    raise SnapshotError(
        f"snapshot '{path}' was replaced during each of {TRIES} attempts to open it; try again"
    )


def write_table(path: Path, columns: Mapping[str, Any]) -> None:
    """Write one file with one record batch."""
    table = pa.table(dict(columns))
    make_private(path)
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=max(1, table.num_rows))
    sync(path)


def read_table(path: Path) -> Any:
    """Map a file into memory as a table."""
    try:
        return pa.ipc.open_file(pa.memory_map(str(path))).read_all().combine_chunks()
    except (pa.ArrowInvalid, OSError) as problem:
        # an error that Arrow found in the file itself has no errno
        is_damaged = not getattr(problem, "errno", None) or isinstance(problem, FileNotFoundError)
        kind = SnapshotError if is_damaged else UnreadableSnapshot
        raise kind(f"snapshot file '{path}' can't be read: {problem}") from None


def as_array(column: Any) -> Any:
    """A column of numbers as an array that uses the same memory. The array is read-only, even if it
    is empty: for each combination of writable and read-only arrays, Numba would compile the kernels
    again."""
    found = column.chunk(0).to_numpy() if column.num_chunks else np.asarray(column)
    found.flags.writeable = False
    return found
