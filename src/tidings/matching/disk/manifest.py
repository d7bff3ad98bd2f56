"""What a directory of Arrow files says of itself: format, counts, and the digest of every file.

    {"format": ..., "version": ..., "notes": {...},
     "files": {NAME: [bytes, SHA-256], ...},
     "digest": SHA-256 of all that stands above it}

Nothing of a directory is used before its digests were compared: kernels run on mapped files and
trust every offset and every rank in them. A process compares a file once, for as long as it is the
same to the file system; bytes that a disk alters later, in pages that were dropped from memory, are
not noticed before the next process comes.

The format before had no digest of the manifest, and is still read: its files are compared, and its
counts with what is in them.

Cost: 1.3 GB/s for each core on the machine where it was measured, two files at a time or more.
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
REMEMBERED = 64  # directories that this process compared
_compared: dict[str, tuple[Any, ...]] = {}


class SnapshotError(TidingsError):
    """A snapshot that can't be read: missing, cut short, altered, or of another version."""


class Manifest(msgspec.Struct):
    format: str
    version: int
    notes: dict[str, Any]
    files: dict[str, tuple[int, str]]  # bytes, digest
    digest: str = ""

    def count(self, name: str) -> int:
        """A number that was noted."""
        found = self.notes.get(name)
        if type(found) is not int:
            raise SnapshotError(f"the manifest has {found!r:.40} for {name}, expected a number")
        return found

    def need(self, path: Path, **counts: int) -> None:
        """SnapshotError unless what was noted is what is there."""
        for name, there in counts.items():
            if self.count(name) != there:
                raise SnapshotError(
                    f"snapshot '{path}': {MANIFEST} has {self.count(name):,} for {name}, but "
                    f"there are {there:,}; build it anew"
                )


def write_manifest(folder: Path, kind: str, version: int, **notes: Any) -> None:
    """Write the manifest of all files in a directory, the last of them. It speaks for directories
    within by their manifests."""
    paths = sorted((*folder.glob("*.arrow"), *folder.glob(f"*/{MANIFEST}")))
    names = [str(path.relative_to(folder)) for path in paths]
    sums = _digests(paths)
    files = {n: (p.stat().st_size, one) for n, p, one in zip(names, paths, sums, strict=True)}
    manifest = Manifest(kind, version, notes, files)
    manifest.digest = _digest_of(manifest)
    write_file(folder / MANIFEST, msgspec.json.format(msgspec.json.encode(manifest)))


def read_manifest(path: Path, kind: str, version: int) -> Manifest:
    """The manifest, of this version or the one before, once it is whole; its files are left to
    `need_files`."""
    try:
        raw = (path / MANIFEST).read_bytes()
    except OSError:
        raise SnapshotError(f"'{path}' is not a snapshot: it has no {MANIFEST}") from None
    try:
        manifest = msgspec.json.decode(raw, type=Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise SnapshotError(f"snapshot '{path}': {MANIFEST} can't be read: {problem}") from None
    if manifest.format != kind or manifest.version not in (version, version - 1):
        raise SnapshotError(
            f"snapshot '{path}': {MANIFEST} is of {manifest.format} version {manifest.version}, "
            f"expected {kind} version {version}"
        )
    # one of the format before has none, and one that was altered to look like that has
    if (manifest.digest or manifest.version == version) and manifest.digest != _digest_of(manifest):
        raise SnapshotError(_altered_message(path, MANIFEST))
    return manifest


def need_files(path: Path, manifest: Manifest) -> None:
    """SnapshotError unless all files are there as the manifest says, byte for byte."""
    found: list[tuple[Any, ...]] = []
    for name, (size, _) in manifest.files.items():
        try:
            seen = (path / name).stat()
        except OSError:
            raise SnapshotError(f"snapshot '{path}': the file {name} is missing") from None
        if seen.st_size != size:
            raise SnapshotError(
                f"snapshot '{path}': {name} has {seen.st_size:,} bytes, expected {size:,}; "
                f"it was cut short or altered; build it anew"
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
    return f"snapshot '{path}': {name} was altered, its checksum differs; build it anew"


def _digest_of(manifest: Manifest) -> str:
    plain = Manifest(manifest.format, manifest.version, manifest.notes, manifest.files)
    return hashlib.sha256(msgspec.json.encode(plain)).hexdigest()


def _digest(path: Path) -> str:
    with path.open("rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest()


def _digests(paths: Sequence[Path]) -> list[str]:
    """Of several files at once: hashing leaves Python's lock alone."""
    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        return list(pool.map(_digest, paths))
