"""Files that survive a crash of the process or the machine, and that reveal when they were altered.

A file written here exists complete or not at all: its bytes are on disk before it gets its name,
and the name is on disk before the call returns. Files and folders belong to their owner alone.

    sealed    9f86d081884c7d659a2feaa0c55ad015 {"batch":42,...}
              digest                           data, in one line
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from tidings.files import make_durable_folder as make_folder, replace_file, sync
from tidings.model import TidingsError

__all__ = ["digest_of", "make_folder", "read_sealed", "sync", "write_sealed", "write_whole"]


def write_whole(path: Path, data: bytes) -> None:
    """Replace the file at `path` by one that holds `data`; make its folder if needed."""
    make_folder(path.parent)
    replace_file(path, data, hidden=True)


def write_sealed(path: Path, data: bytes) -> None:
    """The same as `write_whole`, with a digest in front."""
    write_whole(path, b"%b %b\n" % (_seal(data), data))


def read_sealed(path: Path) -> bytes | None:
    """The data of a sealed file; None if there is no file. TidingsError if it was altered."""
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return None
    data = raw[33:-1]
    if raw != b"%b %b\n" % (_seal(data), data):
        raise TidingsError(f"the file {path} of the outbox was altered: its checksum differs")
    return data


def digest_of(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest()


def _seal(data: bytes) -> bytes:
    return hashlib.sha256(data).hexdigest()[:32].encode()
