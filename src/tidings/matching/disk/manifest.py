"""The manifest of a directory of Arrow files: its format, counts, and the digest of every file.

    {"format": ..., "version": ..., "notes": {...},
     "files": {NAME: [bytes, SHA-256], ...},
     "digest": SHA-256 of everything above}

The digests are checked before any file is used, because kernels work on mapped files and trust
every offset and rank in them. A process checks each file once, and checks it again only if the
file's metadata has changed. If the disk later corrupts pages that are no longer in memory, only the
next process notices.

The oldest format that can be read has no digest of the manifest itself. In that format, the files
are compared with their digests, and the counts are compared with the contents of the files.

Cost: hashing runs at 1.3 GB/s per core on the machine where it was measured; several files are
hashed in parallel.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec

from tidings.files import write_file
from tidings.model import TidingsError

MANIFEST = "manifest.json"
REMEMBERED = 64  # the most directories that are remembered as checked
_compared: dict[str, tuple[Any, ...]] = {}


class SnapshotError(TidingsError):
    """A snapshot can't be read or written: it is missing, corrupt, truncated, or of another
    version."""


class UnreadableSnapshot(SnapshotError):
    """The system can't read a file of a snapshot now: too many files are open, a permission is
    missing, or the disk does not answer. The snapshot may be intact."""


class Manifest(msgspec.Struct):
    format: str
    version: int
    notes: dict[str, Any]
    files: dict[str, tuple[int, str]]  # bytes, digest
    digest: str = ""

    def count(self, name: str) -> int:
        """A count from the notes of the manifest."""
        found = self.notes.get(name)
        if type(found) is not int:
            raise SnapshotError(f"the manifest says {name} = {found!r:.40}, expected a number")
        return found

    def need(self, path: Path, **counts: int) -> None:
        """Raise SnapshotError unless the notes of the manifest contain these counts."""
        for name, there in counts.items():
            if self.count(name) != there:
                raise SnapshotError(
                    f"snapshot '{path}': {MANIFEST} says {name} = {self.count(name):,}, but "
                    f"the files have {there:,}; rebuild the snapshot"
                )


def write_manifest(folder: Path, kind: str, version: int, **notes: Any) -> None:
    """Write the manifest of a directory, after all its other files. For a subdirectory, the
    manifest has the digest of the subdirectory's manifest."""
    paths = sorted((*folder.glob("*.arrow"), *folder.glob(f"*/{MANIFEST}")))
    names = [str(path.relative_to(folder)) for path in paths]
    sums = _digests(paths)
    files = {n: (p.stat().st_size, one) for n, p, one in zip(names, paths, sums, strict=True)}
    manifest = Manifest(kind, version, notes, files)
    manifest.digest = _digest_of(manifest)
    write_file(folder / MANIFEST, msgspec.json.format(msgspec.json.encode(manifest)))


def read_manifest(path: Path, kind: str, version: int, before: int = 2) -> Manifest:
    """Read the manifest and check it against its own digest. The manifest's version may be
    `version` or earlier; `before` is the number of earlier versions that are accepted. Manifests of
    the earliest accepted version have no digest. `need_files` checks the files."""
    raw = manifest_bytes(path)
    try:
        manifest = msgspec.json.decode(raw, type=Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise SnapshotError(f"snapshot '{path}': {MANIFEST} can't be read: {problem}") from None
    if manifest.format != kind or not version - before <= manifest.version <= version:
        raise SnapshotError(
            f"snapshot '{path}': found format {manifest.format} version {manifest.version} in "
            f"{MANIFEST}, expected {kind} version {version}; rebuild it"
        )
    # The oldest version has no digest. So if a manifest that claims to be of that version has a
    # digest, its version number is corrupt, and the digest does not match.
    has_digest = bool(manifest.digest) or not before or manifest.version > version - before
    if has_digest and manifest.digest != _digest_of(manifest):
        raise SnapshotError(_altered_message(path, MANIFEST))
    return manifest


def manifest_bytes(path: Path, part: str = "") -> bytes:
    """The manifest in the directory of a snapshot, or in a part of it."""
    try:
        return (path / part / MANIFEST).read_bytes()
    except OSError as problem:
        missing = f"'{path}' is not a snapshot: it has no {MANIFEST}"
        raise describe_failure(path, MANIFEST, problem, missing) from None


def describe_failure(path: Path, name: str, problem: OSError, missing: str) -> SnapshotError:
    """The error for a file that can't be read; `missing` is the message if the file is missing."""
    if isinstance(problem, FileNotFoundError | NotADirectoryError):
        return SnapshotError(missing)
    return UnreadableSnapshot(f"snapshot '{path}': {name} can't be read: {problem.strerror}")


def need_files(path: Path, manifest: Manifest) -> None:
    """Raise SnapshotError unless every file exists with the size and digest in the manifest."""
    found: list[tuple[Any, ...]] = []
    for name, (size, _) in manifest.files.items():
        try:
            seen = (path / name).stat()
        except OSError as problem:
            missing = f"snapshot '{path}': the file {name} is missing; rebuild the snapshot"
            raise describe_failure(path, name, problem, missing) from None
        if seen.st_size != size:
            raise SnapshotError(
                f"snapshot '{path}': {name} has {seen.st_size:,} bytes, expected {size:,}; "
                "it is corrupt or cut off; rebuild the snapshot"
            )
        found.append((name, seen.st_dev, seen.st_ino, seen.st_mtime_ns, seen.st_ctime_ns))
    key, there = str(path.absolute()), (*manifest.files.values(), *found)
    if _compared.get(key) == there:
        return
    _compared.pop(key, None)
    sums = _digests([path / name for name in manifest.files])
    for (name, (_, expected)), one in zip(manifest.files.items(), sums, strict=True):
        if one != expected:
            raise SnapshotError(_altered_message(path, name))
    while len(_compared) >= REMEMBERED:
        _compared.pop(next(iter(_compared)), None)
    _compared[key] = there


def _altered_message(path: Path, name: str) -> str:
    return f"snapshot '{path}': {name} is corrupt: its checksum differs; rebuild the snapshot"


def _digest_of(manifest: Manifest) -> str:
    plain = Manifest(manifest.format, manifest.version, manifest.notes, manifest.files)
    return hashlib.sha256(msgspec.json.encode(plain)).hexdigest()


def _digest(path: Path) -> str:
    with path.open("rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest()


def _digests(paths: Sequence[Path]) -> list[str]:
    """Hash several files in parallel; hashing releases the GIL."""
    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        return list(pool.map(_digest, paths))
