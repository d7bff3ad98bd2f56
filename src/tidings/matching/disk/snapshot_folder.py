"""A directory of Arrow files with a manifest: written whole or not at all, mapped when it is read.

    manifest.json    format, version, whatever the owner notes, size and digest of every file
    NAME.arrow       a table each

It is replaced as files/atomic_folder.py says. Files are opened one after the other, so a reader
looks afterwards whether it is still the same directory, and otherwise begins anew. Every process
that opens it maps the same pages, once their digests were compared (manifest.py): kernels follow
the offsets in them without a look.

Files say who wants what, so they are made for their owner alone.
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
from tidings.matching.disk.manifest import MANIFEST, SnapshotError
from tidings.model import TidingsError

TRIES = 20  # at a snapshot that is replaced while it is opened
Made = TypeVar("Made")


def need_place(path: Path) -> None:
    """SnapshotError where something is that is not a snapshot."""
    if path.exists() and not (path / MANIFEST).exists():
        raise SnapshotError(f"'{path}' is there and is not a snapshot; it is left alone")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A new directory to write to; at the end of the block it takes the place of the path."""
    need_place(path)
    with replacing_folder(path) as folder:
        yield folder


def read_whole(path: Path, read: Callable[[Path], Made]) -> Made:
    """What `read` makes of the snapshot at a path, all of it from one and the same."""
    for _ in range(TRIES):
        folder = current_folder(path, MANIFEST)
        before = folder_identity(folder, MANIFEST)
        try:
            found = read(folder)
        except Exception as problem:
            # one that was moved aside loses its files one by one, and its manifest perhaps last
            now = current_folder(path, MANIFEST)
            if now != folder or folder_identity(now, MANIFEST) != before:
                continue
            if isinstance(problem, TidingsError | OSError | MemoryError):
                raise
            # digests agree, so it was written like this: by the format before, whose manifest has
            # no digest of its own, or by a program that was not well
            raise SnapshotError(
                f"snapshot '{path}' can't be read: {type(problem).__name__}: {problem}; "
                f"build it anew"
            ) from problem
        if before is not None and folder_identity(folder, MANIFEST) == before:
            return found
    raise SnapshotError(f"snapshot '{path}' was replaced again and again while it was opened")


def write_table(path: Path, columns: Mapping[str, Any]) -> None:
    """Write one file, of one record batch."""
    table = pa.table(dict(columns))
    make_private(path)
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=max(1, table.num_rows))
    sync(path)


def read_table(path: Path) -> Any:
    """A file as a table that is mapped into memory."""
    try:
        return pa.ipc.open_file(pa.memory_map(str(path))).read_all().combine_chunks()
    except (pa.ArrowInvalid, OSError) as problem:
        raise SnapshotError(f"snapshot file '{path}' can't be read: {problem}") from None


def as_array(column: Any) -> Any:
    """A column of numbers as an array over the same memory."""
    return column.chunk(0).to_numpy() if column.num_chunks else np.asarray(column)
