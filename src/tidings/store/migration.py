"""Rewrites logs from older versions of tidings when they are first opened.

*The previous format:*

    00000000000000000001.log    a line for each change: checksum, space, JSON
                                6b8a1f02 [7,0,0,"sub-1","price > 90",3,"Nf1oD+I25AkzL5FwNUfzeg=="]
                                version, changes of its group before and after it, id, text, node,
                                identity
    00000000000000004822.log    named after the first version
    checkpoint.jsonl            similar lines: version and counts, subscriptions, identities

The last segment may end with an unfinished write. The previous format has no end mark, so the
rewrite can't notice that the end of the log was cut off.

*Identities of an older version:* `changes/identities` contains the version of the rules by which
the identities in a log were computed. Since null and absent are distinguished, event patterns have
other forms than before, and therefore other identities. The identities are computed again from the
texts; versions, ids, texts and node numbers stay the same. A log without event patterns is only
marked as current. A node without a text keeps its old identity, because nobody subscribes to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from zlib import crc32

import msgspec

from tidings.files import replace_file
from tidings.filters.dialects import rekeyed_calls
from tidings.model import Id
from tidings.store import checkpoint
from tidings.store.checkpoint import Checkpoint
from tidings.store.groups import START, GroupLog
from tidings.store.reader import Reader
from tidings.store.records import CHANGES, LogError, Point, Record, begin_log, encode_changes
from tidings.store.state import Subscriptions

DIGITS = 20
CHECKPOINT = "checkpoint.jsonl"
MOST = 10_000  # the most changes in a group; a group takes one sync
IDENTITIES = "identities"
CURRENT = b"2\n"

KeyOf = Callable[[str], bytes | None]
"""The identity of a text, or None if the text is refused now."""


class _Line(msgspec.Struct, array_like=True, frozen=True, gc=False):
    version: int
    before: int
    left: int
    id: Id
    filter: str | None
    node: int
    key: bytes | None = None

    @property
    def record(self) -> Record:
        return Record(self.version, self.id, self.filter, self.node, self.key)


class _Header(msgspec.Struct, frozen=True):
    version: int
    subscriptions: int
    nodes: int


_line = msgspec.json.Decoder(_Line)
_header = msgspec.json.Decoder(_Header)
_entry = msgspec.json.Decoder(tuple[Id, str, int])
_key = msgspec.json.Decoder(bytes)


def files_of(folder: Path) -> list[Path]:
    """The files of a log in the previous format: its segments in order, then the others."""
    names = sorted(path.name for path in folder.iterdir())
    segments = [
        folder / name
        for name in names
        if len(name) == DIGITS + 4 and name[:DIGITS].isdecimal() and name.endswith(".log")
    ]
    return segments + [folder / name for name in (CHECKPOINT, "checkpoint.new") if name in names]


def rewrite(folder: Path, beside: Path) -> None:
    """Rewrite a log in the previous format to another folder, as a log of groups."""
    base = read_checkpoint(folder)
    first = need_fit(folder, base)
    version = fill(beside, base, first, read_changes(folder))
    need_fit(folder, base, version - first + 1)


def fill(beside: Path, base: Checkpoint, first: int, changes: Iterator[Record]) -> int:
    """Write a log of groups with a checkpoint and the changes from version `first` on; return the
    last version."""
    log, version = begin_log(beside), first - 1
    while group := list(islice(changes, MOST)):
        version = group[-1].version
        log.append(encode_changes(group[0].version, [one.entry for one in group]), version)
    if base.version:
        if version == first - 1:  # a group without changes records the version
            log.append(encode_changes(first, []), version)
        point = Point(first - 1, START)
        checkpoint.write(beside, msgspec.structs.replace(base, log=log.id, point=point))
    log.close()
    return version


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


def read_changes(folder: Path) -> Iterator[Record]:
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


def read_what_is_good(folder: Path) -> list[Record]:
    """All readable changes, even if others are missing between them."""
    good: list[_Line] = []
    for path in _segments(folder):
        with path.open("rb") as file:
            good += [one for one in map(_decode_line, file) if one is not None]
    # the last changes are the beginning of a group that was never acknowledged
    while good and good[-1].left:
        good.pop()
    return [one.record for one in good]


def read_checkpoint(folder: Path) -> Checkpoint:
    """The checkpoint in the previous format; raises LogError if it is corrupt."""
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
    that dies leaves the beginning of a line. A machine that dies leaves zeros where data did not
    reach the disk, followed only by lines of the same group."""
    if not line.endswith(b"\n"):
        return _decode_line(line[:-1] + b"\n") is None
    later = [one for one in map(_decode_line, rest) if one is not None]
    return b"\0" in line and all(one.version - one.before <= version for one in later)


def _damage(path: Path, line: int, problem: str) -> LogError:
    return LogError(
        f"the log is damaged: '{path}', line {line}, {problem}; restore '{path.parent}' from a "
        f"backup, or run `tidings subscriptions repair {path.parent}`, which keeps the readable "
        "changes"
    )


# -- identities of an older version -------------------------------------------------------------


def is_current(folder: Path) -> bool:
    """Whether the identities in a log are those of this version; also true if there is no log
    yet."""
    return (folder / CHANGES / IDENTITIES).exists() or not GroupLog(folder / CHANGES).segments()


def note_current(changes: Path) -> None:
    """Record in the folder of a log of groups that its identities are those of this version."""
    replace_file(changes / IDENTITIES, CURRENT)


def has_rekeyed(folder: Path) -> bool:
    """Whether a file of a log has a filter whose identity may be that of an older version."""
    files = (path for path in (folder / CHANGES).iterdir() if path.is_file())
    return any(_is_rekeyed(path.read_bytes().lower()) for path in files)


def _is_rekeyed(text: bytes) -> bool:
    return any(call.encode() in text for call in rekeyed_calls())


def renew_identities(folder: Path, beside: Path, key_of: KeyOf) -> None:
    """Rewrite a log to another folder, with the identities of this version."""
    reader = Reader(folder)
    end = reader.end()
    base, oldest = checkpoint.read(folder, end), reader.oldest(end)
    records = list(reader.changes(oldest, end))
    known = dict(enumerate(base.keys, 1)) | {one.node: one.key for one in records if one.key}
    texts = {node: text for text, node in base.subscriptions.values()}
    texts |= {one.node: one.filter for one in records if one.filter is not None}
    keys = _renew(known, texts, key_of)
    base = msgspec.structs.replace(base, keys=[keys[node] for node in range(1, len(base.keys) + 1)])
    fill(beside, base, oldest + 1, _with_keys(records, keys))
    note_current(beside)


def _with_keys(records: list[Record], keys: Mapping[int, bytes]) -> Iterator[Record]:
    for one in records:
        yield one if one.key is None else msgspec.structs.replace(one, key=keys[one.node])


def _renew(known: dict[int, bytes], texts: Mapping[int, str], key_of: KeyOf) -> dict[int, bytes]:
    """The identities of the nodes. If two nodes would get the same identity, the later node keeps
    its old one."""
    used = set(known.values())
    out = dict(known)
    for node, text in sorted(texts.items()):
        key = key_of(text) if _is_rekeyed(text.lower().encode()) else None
        if key is not None and key not in used:
            out[node] = key
            used.add(key)
    return out
