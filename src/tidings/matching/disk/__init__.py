"""Matchers and snapshots on disk: folders of Arrow files with a manifest, mapped when opened.

    FOLDER/manifest.json    format, version, notes, size and digest of every file, its own digest
    FOLDER/NAME.arrow       one table per file

    snapshot_folder.py   writes and maps a folder; files/atomic_folder.py replaces it atomically
    manifest.py          describes a folder; its digests are compared before any file is used
    matcher_folder.py    the files of a matcher; diagram_folder.py: those of its diagrams
    index_files.py       arrays and terms as files

This folder is for channel, cli, snapshots, spark and store, not for users, who have `Matcher.save`
and `Matcher.open`. Start at snapshot_folder.py.
"""

from tidings.matching.disk.manifest import (
    MANIFEST,
    Manifest,
    SnapshotError,
    UnreadableSnapshot,
    manifest_bytes,
    need_files,
    read_manifest,
    write_manifest,
)
from tidings.matching.disk.matcher_folder import has_rekeyed, need_matcher_files
from tidings.matching.disk.snapshot_folder import (
    as_array,
    need_place,
    read_table,
    read_whole,
    replacing,
    write_table,
)

__all__ = [
    "MANIFEST",
    "Manifest",
    "SnapshotError",
    "UnreadableSnapshot",
    "as_array",
    "has_rekeyed",
    "manifest_bytes",
    "need_files",
    "need_matcher_files",
    "need_place",
    "read_manifest",
    "read_table",
    "read_whole",
    "replacing",
    "write_manifest",
    "write_table",
]
