"""Logs of subscriptions in the oldest format, a text format:

    00000000000000000001.log    a line for each change: checksum, space, JSON
                                6b8a1f02 [7,0,0,"sub-1","price > 90",3,"Nf1oD+I25AkzL5FwNUfzeg=="]
                                version, changes of its group before and after it, id, text, node,
                                identity
    00000000000000004822.log    named after the first version
    checkpoint.jsonl            similar lines: version and counts, subscriptions, identities

The last segment may end with an unfinished write. This format has no end mark, so a reader can't
notice that the end of the log was cut off.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from zlib import crc32

import msgspec

from tidings.model import Id
from tidings.store.before.old_log import Checkpoint, OldLog, Subscriptions
from tidings.store.change_records import ChangeRecord, LogError
from tidings.store.groups.layout import SEGMENT_MAGIC

DIGITS = 20
CHECKPOINT = "checkpoint.jsonl"


class _Line(msgspec.Struct, array_like=True, frozen=True, gc=False):
    version: int
    before: int
    left: int
    id: Id
    filter: str | None
    node: int
    key: bytes | None = None

    @property
    def record(self) -> ChangeRecord:
        return ChangeRecord(self.version, self.id, self.filter, self.node, self.key)


class _Header(msgspec.Struct, frozen=True):
    version: int
    subscriptions: int
    nodes: int


_line = msgspec.json.Decoder(_Line)
_header = msgspec.json.Decoder(_Header)
_entry = msgspec.json.Decoder(tuple[Id, str, int])
_key = msgspec.json.Decoder(bytes)


def files_of(folder: Path) -> list[Path]:
    """The files of a log in the text format: its segments in order, then the others."""
    names = sorted(path.name for path in folder.iterdir())
    segments = [
        folder / name
        for name in names
        if len(name) == DIGITS + 4 and name[:DIGITS].isdecimal() and name.endswith(".log")
    ]
    segments = [path for path in segments if not _is_binary(path)]
    return segments + [folder / name for name in (CHECKPOINT, "checkpoint.new") if name in names]


def _is_binary(path: Path) -> bool:
    """Whether a file is a segment of a log of groups; segments of both formats may have the same
    name."""
    with path.open("rb") as file:
        return file.read(len(SEGMENT_MAGIC)) == SEGMENT_MAGIC


def read(folder: Path) -> OldLog:
    """Read a whole log; raises LogError if it is damaged."""
    base = read_checkpoint(folder)
    first = need_fit(folder, base)
    records = list(read_changes(folder))
    need_fit(folder, base, len(records))
    return OldLog(base, first, records)


def need_fit(folder: Path, base: Checkpoint, changes: int | None = None) -> int:
    """The first version of the segments; raises LogError if they do not belong to the checkpoint.
    `changes` is the number of changes in the segments, if known."""
    segments = _segments(folder)
    if not segments:
        raise _damage(folder / CHECKPOINT, 1, "has no segment file next to it")
    first = int(segments[0].stem)
    if first > base.version + 1:
        problem = f"begins with version {first}, expected at most {base.version + 1}"
        raise _damage(segments[0], 1, problem)
    if changes is not None and (last := first + changes - 1) < base.version:
        problem = f"ends with version {last}, expected at least {base.version}"
        raise _damage(segments[-1], last, problem)
    return first


def read_changes(folder: Path) -> Iterator[ChangeRecord]:
    """The changes of all complete groups, in order; raises LogError if one is missing or
    corrupt."""
    segments = _segments(folder)
    expected = int(segments[0].stem) if segments else 0
    for path in segments:
        first, is_last, group = int(path.stem), path == segments[-1], list[_Line]()
        if first != expected:
            raise _damage(path, 1, f"begins with version {first}, expected {expected}")
        with path.open("rb") as file:
            for line in file:
                one, version = _decode_line(line), expected + len(group)
                if one is None and is_last and _is_unfinished(line, list(file), version):
                    return
                if one is None or one.version != version:
                    raise _damage(path, version - first + 1, "is corrupt: its checksum differs")
                group.append(one)
                if not one.left:
                    yield from (each.record for each in group)
                    expected, group = expected + len(group), []
        if group and not is_last:
            raise _damage(path, expected - first + len(group) + 1, "is missing")


def read_checkpoint(folder: Path) -> Checkpoint:
    """The checkpoint in the text format; raises LogError if it is corrupt."""
    path = folder / CHECKPOINT
    try:
        bodies = list(map(_body, path.read_bytes().splitlines(keepends=True)))
    except FileNotFoundError:
        return Checkpoint()
    good = [body for body in bodies if body is not None]
    try:
        header = _header.decode(good[0])
        texts, keys = good[1 : 1 + header.subscriptions], good[1 + header.subscriptions :]
        if len(good) < len(bodies) or len(keys) != header.nodes:
            raise ValueError
        subscriptions: Subscriptions = {id_: (text, node) for id_, text, node in
                                        map(_entry.decode, texts)}  # fmt: skip
        known = list(map(_key.decode, keys))
    except (ValueError, IndexError):
        line = next((at for at, body in enumerate(bodies, 1) if body is None), len(bodies))
        raise _damage(path, line, "is corrupt or cut off") from None
    return Checkpoint(header.version, subscriptions=subscriptions, keys=known)


def _segments(folder: Path) -> list[Path]:
    return [path for path in files_of(folder) if path.suffix == ".log"]


def _body(line: bytes) -> bytes | None:
    body = line[9:-1]
    whole = line[-1:] == b"\n" and line[:9] == b"%08x " % crc32(body)
    return body if whole else None


def _decode_line(line: bytes) -> _Line | None:
    body = _body(line)
    try:
        return None if body is None else _line.decode(body)
    except msgspec.DecodeError:
        return None


def _is_unfinished(line: bytes, rest: list[bytes], version: int) -> bool:
    """Whether a line is incomplete because its writer died, and not because of damage. A process
    that dies leaves the beginning of a line. When a machine dies, zeros take the place of data that
    did not reach the disk; after the zeros, there are only lines of the same group."""
    if not line.endswith(b"\n"):
        return _decode_line(line[:-1] + b"\n") is None
    later = [one for one in map(_decode_line, rest) if one is not None]
    return b"\0" in line and all(one.version - one.before <= version for one in later)


def _damage(path: Path, line: int, problem: str) -> LogError:
    return LogError(
        f"the log is damaged: '{path}', line {line}, {problem}; restore '{path.parent}' from a "
        "backup, or repair it with the release of tidings that wrote it"
    )
