"""The files of a log: segments in which one change follows the other, and how they are read.

    00000000000000000001.log    versions 1 to 4821, a line each: line n holds first + n - 1
    00000000000000004822.log    versions from 4822 on; the last segment is the one that grows
    checkpoint.jsonl            the state at one version, when older segments were dropped
    lock, forgetting.lock       who may write; see locks.py

Only the end of the last segment may be unfinished: the beginning of a group whose writer died, or
what a power cut left of one, with sectors of zeros in it. It is ignored by readers and cut off by
the next writer, before it appends. So these hold:

- A group lies in one segment, and a segment begins where the one before it ended.
- Bytes after a group, or a segment after its own, mean that the group is on the disk: a writer
  syncs what it finds before it adds to it.
- What was acknowledged is never changed, so a position behind it stays good.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import msgspec

from tidings.store.records import LogError, Record, lost_its_end, record_of

DIGITS = 20
SECTOR = 512  # bytes that a disk writes whole or not at all; pages and blocks are multiples of it


class Position(msgspec.Struct, frozen=True):
    """The end of a group: its last version, and where that is (segment, byte)."""

    version: int
    first: int
    offset: int


def start_of(first: int) -> Position:
    """The start of a segment, which is the end of all before it."""
    return Position(first - 1, first, 0)


def segment_path(folder: Path, first: int) -> Path:
    """The file of the segment that begins with a version."""
    return folder / f"{first:0{DIGITS}}.log"


def firsts(folder: Path) -> list[int]:
    """The first versions of the segments that are there, in order."""
    stems = (path.stem for path in folder.iterdir() if path.suffix == ".log")
    return sorted(int(stem) for stem in stems if len(stem) == DIGITS and stem.isdecimal())


def read(folder: Path, start: Position, stop: int | None = None) -> Iterator[tuple[Record, int]]:
    """The records of a segment from a position on, each with the offset behind it.

    Up to the offset `stop` everything was acknowledged, and anything else than whole groups is
    damage. Without `stop` the unfinished end of the last segment ends the iteration.
    """
    path = segment_path(folder, start.first)
    expected, offset, left = start.version + 1, start.offset, 0
    with path.open("rb") as file:
        file.seek(offset)
        for line in file:
            if stop is not None and offset >= stop:
                break
            record = record_of(line)
            if record is None:
                if stop is None and _is_unfinished(line, offset, file, expected):
                    return
                raise damage(path, start.first, expected, "was altered, its checksum differs")
            if record.version != expected:
                problem = f"has version {record.version}, expected {expected}"
                raise damage(path, start.first, expected, problem)
            left = record.left
            expected += 1
            offset += len(line)
            yield record, offset
    if stop is not None and (left or offset != stop):
        raise damage(path, start.first, expected, "is missing, the file was cut short")


def _is_unfinished(line: bytes, offset: int, file: BinaryIO, version: int) -> bool:
    """Whether a line that is not whole is due to a writer that died, and not to damage.

    A process that dies leaves the beginning of what it wrote. A machine that dies may leave
    sectors of it out, which read as zeros from where the file ended before, and JSON has none:
    however few of these bytes the group has, they go on to the end of a sector or of the file.
    Zeros that end elsewhere were put there. And lines after them are of the same group: nobody has
    added to it.
    """
    if not line.endswith(b"\n"):
        return not lost_its_end(line) or (line[-1] == 0 and (offset + len(line)) % SECTOR == 1)
    zeros = list(re.finditer(rb"\0+", line))
    if not zeros or any((offset + run.end()) % SECTOR for run in zeros):
        return False
    rest = [line[zeros[-1].end() :], *file]
    later = [record for record in map(record_of, rest) if record is not None]
    return all(one.version - one.before <= version <= one.version for one in later)


def damage(path: Path, first: int, version: int, problem: str) -> LogError:
    """An error that names file and line."""
    return LogError(f"the log is damaged: '{path}', line {version - first + 1}, {problem}")


def records(
    folder: Path, after: int, end: Position, marks: Sequence[Position] = ()
) -> Iterator[Record]:
    """The records of the versions after one, up to the end, through all segments.

    `marks` are known ends of groups, in order of versions: the reading starts at one of them when
    there is one that is nearer than the start of a segment.
    """
    if after >= end.version:
        return
    there = [first for first in firsts(folder) if first <= end.first]
    number = bisect_right(there, after + 1)
    if not number:
        oldest = there[0] - 1 if there else end.version
        raise LogError(
            f"the log has no changes after version {after}, only those after {oldest}: older "
            f"segments were dropped or are missing from '{folder}'"
        )
    position = start_of(there[number - 1])
    nearest = bisect_right(marks, after, key=lambda mark: mark.version)
    if nearest and marks[nearest - 1].first == position.first:
        position = marks[nearest - 1]
    for first, following in zip(there[number - 1 :], [*there[number:], None], strict=True):
        path = segment_path(folder, first)
        position = position if position.first == first else start_of(first)
        stop = end.offset if first == end.first else path.stat().st_size
        version = position.version
        for record, _ in read(folder, position, stop):
            version = record.version
            if version > after:
                yield record
        if following is not None and version + 1 != following:
            problem = f"is missing: the next segment begins with version {following}"
            raise damage(path, first, version + 1, problem)
