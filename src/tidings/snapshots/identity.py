"""The identity of the snapshot in a directory, and a check that its files are complete.

A snapshot that replaces another of the same version has a different identity.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from tidings.files import local_path, scheme_of
from tidings.matching.disk import (
    Manifest,
    manifest_bytes,
    need_files,
    need_matcher_files,
    read_manifest,
)
from tidings.snapshots.remote import remote_identity
from tidings.snapshots.snapshot import FORMAT, VERSION


def identity_of(path: str | Path) -> str:
    """A digest of the two manifests, which contain the digests of all files.

    Cost: two small files are read.
    """
    if scheme_of(path):
        return remote_identity(path)
    path = local_path(path, "a snapshot")
    found = hashlib.sha256()
    for part in ("", "index"):
        found.update(manifest_bytes(path, part))
    return found.hexdigest()[:32]


def need_whole(path: Path) -> Manifest:
    """Check every byte against its digest, and return the manifest; raise SnapshotError on a
    mismatch.

    Cost: the first call in a process reads all bytes; later calls read only the manifests and the
    files' metadata.
    """
    manifest = read_manifest(path, FORMAT, VERSION)
    need_files(path, manifest)
    need_matcher_files(path / "index")
    return manifest
