"""The end mark of a log records how far the log was acknowledged, in a separate file.

    end    [ newest mark ][ previous mark ]         each in its own sector, written alternately

The chain reveals gaps in the middle of a log, but only data outside the log can reveal a missing
end. The mark is written after a group is on the disk and before the group is acknowledged. So every
acknowledged group is at or before the mark. The mark is not synced each time: if the process dies,
the operating system still writes the mark. If the machine dies, the mark may be older than the log.
An older mark does no harm, because the groups themselves are synced. The mark is never ahead of the
log.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path
from zlib import crc32

import msgspec

from tidings.files import open_private, sync as sync_names, sync_handle, write_at

NAME = "end"
SECTOR = 512
_MAGIC = b"tidingsE"
_MARK = struct.Struct("<8sQQQQQQQQ")
_CRC = struct.Struct("<I")


class EndMark(msgspec.Struct, frozen=True):
    """The end of the last acknowledged group."""

    log: int
    oldest: int  # the oldest segment that is not dropped
    number: int  # the number of the group
    segment: int  # the number of the first group of its segment
    offset: int  # where the group ends
    chain: int  # the chain of the group
    value: int  # set by the user of the log, for example a version


class EndMarkFile:
    """The file of a log's end mark. Only the writer of the log may call `write`."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / NAME
        self._handle = -1
        self._seen: list[tuple[int, EndMark] | None] | None = None  # the slots, as last read

    def read(self) -> EndMark | None:
        """The newest intact mark, or None."""
        self._seen = self._slots()
        marks = [mark for mark in self._seen if mark is not None]
        return max(marks, key=lambda one: one[0])[1] if marks else None

    def write(self, mark: EndMark, *, sync: bool = False) -> None:
        """Write the mark; if `sync` is set, wait until the mark is on the disk. Call `read`
        first."""
        slots, self._seen = self._slots() if self._seen is None else self._seen, None
        turn = max((one[0] for one in slots if one is not None), default=0) + 1
        if self._handle < 0:
            self._handle = open_private(self._path, os.O_RDWR | os.O_CREAT)
        # write both slots if one is damaged or the file is new
        turns = (turn,) if None not in slots and slots else (turn, turn + 1)
        for one in turns:
            body = _MARK.pack(_MAGIC, one, *msgspec.structs.astuple(mark))
            data = (body + _CRC.pack(crc32(body))).ljust(SECTOR, b"\0")
            write_at(self._handle, data, one % 2 * SECTOR)
        if not slots:
            sync_names(self._path.parent)
        if sync or not slots:
            sync_handle(self._handle)

    def close(self, *, sync: bool = True) -> None:
        if self._handle >= 0:
            if sync:
                sync_handle(self._handle)
            os.close(self._handle)
        self._handle = -1

    def _slots(self) -> list[tuple[int, EndMark] | None]:
        """Both marks with their counters. A corrupt mark is None; if there is no file, the list is
        empty."""
        try:
            handle = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return []
        try:
            data = os.pread(handle, 2 * SECTOR, 0)
        finally:
            os.close(handle)
        return [_decode_mark(data[at : at + SECTOR]) for at in (0, SECTOR)]


def _decode_mark(data: bytes) -> tuple[int, EndMark] | None:
    body, crc = data[: _MARK.size], data[_MARK.size : _MARK.size + _CRC.size]
    rest_is_blank = not data[_MARK.size + _CRC.size :].strip(b"\0")
    if len(body) < _MARK.size or crc != _CRC.pack(crc32(body)) or not rest_is_blank:
        return None
    magic, turn, *rest = _MARK.unpack(body)
    return (turn, EndMark(*rest)) if magic == _MAGIC else None
