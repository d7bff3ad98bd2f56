"""Stores waiting items on the disk instead of in memory.

Each item is appended to a file as one piece, and a file is deleted when all its pieces have
been taken. Nothing is synced: waiting publications were not acknowledged, so after a crash their
publishers send them again, and the files of an earlier process are deleted at the start.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

FILE_BYTES = 32 << 20  # a file with this many bytes gets no more pieces

Place = tuple[int, int, int]  # the number of the file, start, size


class Spill:
    """Encoded items in the files of a folder, which belongs to this process alone."""

    def __init__(self, folder: Path, file_bytes: int = FILE_BYTES) -> None:
        self._folder = folder
        self._file_bytes = file_bytes
        self._files: dict[int, int] = {}  # number -> descriptor
        self._left: dict[int, int] = {}  # number of the file -> pieces not taken yet
        self._last = 0
        self._end = 0  # the size of the last file
        self.bytes = 0
        """How many bytes wait."""
        shutil.rmtree(folder, ignore_errors=True)

    @property
    def files(self) -> int:
        return len(self._files)

    def put(self, data: bytes) -> Place:
        """Append a piece. If the disk is full, this raises OSError, and nothing is added."""
        if self._last not in self._files or self._end >= self._file_bytes:
            self._open_next()
        start, written = self._end, 0
        while written < len(data):  # a failed write leaves bytes that nobody reads
            written += os.pwrite(self._files[self._last], data[written:], start + written)
        self._end = start + len(data)
        self._left[self._last] += 1
        self.bytes += len(data)
        return self._last, start, len(data)

    def take(self, place: Place) -> bytes:
        """Read a piece and remove it. A piece that can't be read is also removed; then OSError is
        raised."""
        number, start, size = place
        try:
            found = os.pread(self._files[number], size, start)
            if len(found) != size:
                raise OSError(f"{self._path(number)}: found {len(found)} bytes, expected {size}")
            return found
        finally:
            self.drop(place)

    def drop(self, place: Place) -> None:
        """Forget a piece."""
        number, _, size = place
        self.bytes -= size
        self._left[number] -= 1
        if not self._left[number]:
            os.close(self._files.pop(number))
            del self._left[number]
            self._path(number).unlink(missing_ok=True)

    def close(self) -> None:
        """Delete all files."""
        for descriptor in self._files.values():
            os.close(descriptor)
        self._files.clear()
        self._left.clear()
        self.bytes = 0
        shutil.rmtree(self._folder, ignore_errors=True)

    def _open_next(self) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._last += 1
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        self._files[self._last] = os.open(self._path(self._last), flags, 0o600)
        self._left[self._last] = 0
        self._end = 0

    def _path(self, number: int) -> Path:
        return self._folder / f"{number}.waiting"
