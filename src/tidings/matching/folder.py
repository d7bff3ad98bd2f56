"""A directory of Arrow files with a manifest: written whole or not at all, mapped when it is read.

    manifest.json    format, version, whatever the owner notes, size and checksum of every file
    NAME.arrow       a table each

Files are written to a new directory that then takes the place of the old one, which goes:

    .NAME.x          written to ──────────────┐ second rename
    NAME             the snapshot ─┐ first    └─> NAME
    .NAME.old.y/snapshot  <────────┘              and then this one is removed

Between the two renames there is none at the path, for a moment or, if the process was killed just
then, until the next save; who opens it takes the old one, which is whole. Files are opened one
after the other, so a reader looks afterwards whether it is still the same directory, and otherwise
begins anew. Every process that opens it maps the same pages.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np
import pyarrow as pa

from tidings.files import make_folder, make_private, private_file
from tidings.model import TidingsError

MANIFEST = "manifest.json"
ASIDE = "snapshot"  # the name of a snapshot that was moved aside, in a folder of its own
TRIES = 20  # at a snapshot that is replaced while it is opened
Made = TypeVar("Made")


class SnapshotError(TidingsError):
    """A snapshot that can't be read: missing, cut short, altered, or of another version."""


class Manifest(msgspec.Struct):
    format: str
    version: int
    notes: dict[str, Any]
    files: dict[str, tuple[int, str]]  # bytes, checksum

    def count(self, name: str) -> int:
        """A number that was noted."""
        found = self.notes.get(name)
        if type(found) is not int:
            raise SnapshotError(f"the manifest has {found!r:.40} for {name}, expected a number")
        return found


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
        except Exception:
            now = _identity(folder if before is not None else _standing(path))
            if now == before:
                raise
            continue
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


def write_manifest(folder: Path, kind: str, version: int, **notes: Any) -> None:
    """Write the manifest of all files in a directory, the last of them."""
    paths = sorted(folder.glob("*.arrow"))
    sums = _checksums(paths)
    files = {p.name: (p.stat().st_size, one) for p, one in zip(paths, sums, strict=True)}
    manifest = Manifest(kind, version, notes, files)
    with private_file(folder / MANIFEST, "wb") as out:
        out.write(msgspec.json.format(msgspec.json.encode(manifest)))
        out.flush()
        os.fsync(out.fileno())


def read_manifest(path: Path, kind: str, version: int, *, verify: bool) -> Manifest:
    """The manifest, once all files are there as it says; `verify` compares checksums too."""
    manifest = _manifest(path)
    if manifest.format != kind or manifest.version != version:
        raise SnapshotError(
            f"snapshot '{path}' is of {manifest.format} version {manifest.version}, expected "
            f"{kind} version {version}"
        )
    for name, (size, _) in manifest.files.items():
        file = path / name
        if not file.is_file():
            raise SnapshotError(f"snapshot '{path}': the file {name} is missing")
        have = file.stat().st_size
        if have != size:
            raise SnapshotError(
                f"snapshot '{path}': {name} has {have:,} bytes, expected {size:,}; "
                f"it was cut short or altered"
            )
    if verify:
        sums = _checksums([path / name for name in manifest.files])
        for (name, (_, expected)), found in zip(manifest.files.items(), sums, strict=True):
            if found != expected:
                raise SnapshotError(f"snapshot '{path}': {name} was altered, its checksum differs")
    return manifest


def read_table(path: Path) -> Any:
    """A file as a table that is mapped into memory."""
    try:
        return pa.ipc.open_file(pa.memory_map(str(path))).read_all().combine_chunks()
    except (pa.ArrowInvalid, OSError) as problem:
        raise SnapshotError(f"snapshot file '{path}' can't be read: {problem}") from None


def as_array(column: Any) -> Any:
    """A column of numbers as an array over the same memory."""
    return column.chunk(0).to_numpy() if column.num_chunks else np.asarray(column)


def _manifest(path: Path) -> Manifest:
    try:
        raw = (path / MANIFEST).read_bytes()
    except OSError:
        raise SnapshotError(f"'{path}' is not a snapshot: it has no {MANIFEST}") from None
    try:
        return msgspec.json.decode(raw, type=Manifest)
    except msgspec.DecodeError as problem:
        raise SnapshotError(f"snapshot '{path}': the manifest can't be read: {problem}") from None


def _checksum(path: Path) -> str:
    with path.open("rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest()


def _checksums(paths: Sequence[Path]) -> list[str]:
    """Of several files at once: hashing leaves Python's lock alone."""
    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        return list(pool.map(_checksum, paths))


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
