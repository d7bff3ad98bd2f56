"""Files that survive a crash of the process or the machine, and that reveal any modification.

A file written here is either complete or absent: its bytes are on disk before it gets its name, and
the name is on disk before the call returns. Only the user that runs the process can access the
files and folders.

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
    """Replace the file at `path` with one that contains `data`; create its folder if needed."""
    make_folder(path.parent)
    replace_file(path, data, hidden=True)


def write_sealed(path: Path, data: bytes) -> None:
    """Like `write_whole`, but with a digest before the data."""
    write_whole(path, b"%b %b\n" % (_seal(data), data))


def read_sealed(path: Path) -> bytes | None:
    """The data of a sealed file, or None if there is no file. Raises TidingsError if the digest
    does not match."""
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return None
    data = raw[33:-1]
    if raw != b"%b %b\n" % (_seal(data), data):
        raise TidingsError(f"the file {path} of the outbox was altered: its checksum differs")
    return data


def digest_of(path: Path) -> str:
    """The SHA-256 digest of a file, in hexadecimal."""
    with path.open("rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest()


def _seal(data: bytes) -> bytes:
    return hashlib.sha256(data).hexdigest()[:32].encode()
