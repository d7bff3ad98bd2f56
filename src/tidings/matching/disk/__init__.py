""""""

from tidings.matching.disk.manifest import (
    MANIFEST,
    Manifest,
    SnapshotError,
    need_files,
    read_manifest,
    write_manifest,
)
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
    "as_array",
    "need_files",
    "need_place",
    "read_manifest",
    "read_table",
    "read_whole",
    "replacing",
    "write_manifest",
    "write_table",
]
