"""Logs of subscriptions in the previous format, a separate log of groups:

    changes/00000000000000000001.log ...   groups of changes, as in journal/rows.py but without S
    changes/end                            its value is the latest version
    changes/checkpoint                     magic, size of the body, its digest, the body
    changes/identities                     the version of the rules for identities, if it is 2

Nodes were numbered 1, 2, 3 and so on, independently of the versions; the number of a filter never
changed.
"""

from __future__ import annotations

import struct
from hashlib import blake2b
from pathlib import Path

import msgspec

from tidings.model import Id
from tidings.store.change_records import ChangeRecord, LogError
from tidings.store.groups import GroupLog, Position
from tidings.store.journal.rows import SUBSCRIPTIONS, decode_rows

CHANGES = "changes"
IDENTITIES = "identities"
_HEAD = struct.Struct("<8sQ16s")
_MAGIC = b"tidingsC"

Subscriptions = dict[Id, tuple[str, int]]


class Point(msgspec.Struct, frozen=True):
    version: int
    at: Position


class Checkpoint(msgspec.Struct, frozen=True):
    """The state at a version; if there is no file, the state before the first change."""

    version: int = 0
    log: int = 0
    point: Point = Point(0, Position())
    subscriptions: Subscriptions = {}
    keys: list[bytes] = []
    """The identities of the nodes, starting with node 1."""
    lost: list[tuple[int, int]] = []
    dialects: dict[Id, str] = {}


class OldLog(msgspec.Struct, frozen=True):
    """A whole log: a checkpoint, and the changes from the version `first` on."""

    base: Checkpoint
    first: int
    records: list[ChangeRecord]
    has_identities: bool = False
    """Whether the identities were computed by the present rules."""


_decode = msgspec.msgpack.Decoder(Checkpoint).decode


def read(folder: Path) -> OldLog:
    """Read a whole log; raises LogError if it is damaged."""
    place = folder / CHANGES
    base, log = _read_checkpoint(place), GroupLog(place)
    walk, records, first = log.walk(), list[ChangeRecord](), 0
    for group in walk:
        for data in group.records:
            if data is None or walk.damages:
                break
            rows = decode_rows(SUBSCRIPTIONS + data)
            first = first or rows.first
            records += [
                ChangeRecord(version, one.id, one.filter, one.node, one.key, one.dialect)
                for version, one in enumerate(rows.rows, rows.first)
            ]
    losses = log.losses(walk)
    if losses:
        raise damage_error(folder, losses[0])
    last = records[-1].version if records else max(first - 1, 0)
    if (base.version and base.log != log.id) or base.version > last or first > base.version + 1:
        raise damage_error(folder, f"{place / 'checkpoint'} does not belong to the log")
    return OldLog(base, first or 1, records, (place / IDENTITIES).exists())


def _read_checkpoint(place: Path) -> Checkpoint:
    path = place / "checkpoint"
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return Checkpoint()
    body = data[_HEAD.size :]
    digest = blake2b(body, digest_size=16).digest()
    if data[: _HEAD.size] != _HEAD.pack(_MAGIC, len(body), digest):
        raise damage_error(place.parent, f"{path} is corrupt")
    return _decode(body)


def damage_error(folder: Path, problem: str) -> LogError:
    return LogError(
        f"the log '{folder}', in the previous format, is damaged: {problem}; restore it from a "
        "backup, or repair it with the release of tidings that wrote it"
    )
