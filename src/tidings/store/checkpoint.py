"""The state at one version, in a file, so that older segments can be dropped.

    changes/checkpoint    magic, size of the body, its digest, the body

The body includes the checkpoint's position in the log of groups. A new checkpoint is written next
to the old one, synced, and replaces it atomically. So there is one complete checkpoint, or none.
"""

from __future__ import annotations

import struct
from hashlib import blake2b
from pathlib import Path

import msgspec

from tidings.files import replace_file
from tidings.store.groups import START, GroupLog, Mark, end_of
from tidings.store.records import CHANGES, LogError, Point, damage_error, read_groups
from tidings.store.state import Dialects, Nodes, Subscriptions, apply

NAME = "checkpoint"
_HEAD = struct.Struct("<8sQ16s")
_MAGIC = b"tidingsC"


class Checkpoint(msgspec.Struct, frozen=True):
    """The state at a version; if there is no file, the state before the first change."""

    version: int = 0
    log: int = 0
    """The id of the log of groups that it belongs to."""
    point: Point = Point(0, START)
    """Where later changes begin: after the last group that has none of them."""
    subscriptions: Subscriptions = {}
    keys: list[bytes] = []
    """The identities of the nodes, starting with node 1."""
    lost: list[tuple[int, int]] = []
    """Ranges of versions (first, last) that were lost when the log was repaired."""
    dialects: Dialects = {}


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Checkpoint).decode


def write(folder: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint to the folder of a log of groups."""
    body = _encode(checkpoint)
    replace_file(folder / NAME, _HEAD.pack(_MAGIC, len(body), _digest(body)) + body)


def read(folder: Path, mark: Mark) -> Checkpoint:
    """The checkpoint of a log that ends at a mark; raises LogError if the checkpoint is damaged or
    missing."""
    path = folder / CHANGES / NAME
    found = load(path)
    if isinstance(found, str):
        raise damage_error(folder, found, 0, mark.value)
    if problem := find_misfit(path, found, mark):
        raise damage_error(folder, problem, 0, mark.value)
    return found


def find_misfit(path: Path, found: Checkpoint, mark: Mark) -> str:
    """The problem, if a checkpoint does not belong to a log that ends at a mark; otherwise an empty
    text."""
    if found.version and found.log != mark.log:
        return f"{path} belongs to another log"
    if found.version > mark.value:
        return (
            f"{path} is newer than the log: found version {found.version:,}, expected at most "
            f"{mark.value:,}"
        )
    return f"{path} is missing" if not found.version and mark.oldest > 1 else ""


def load(path: Path) -> Checkpoint | str:
    """The checkpoint in a file, or a sentence if the file is corrupt."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return Checkpoint()
    body = data[_HEAD.size :]
    if data[: _HEAD.size] != _HEAD.pack(_MAGIC, len(body), _digest(body)):
        return f"{path} is corrupt"
    return _decode(body)


def state_at(folder: Path, version: int, mark: Mark) -> Checkpoint:
    """The state at a version up to the end of the log; raises LogError if it was dropped."""
    base = read(folder, mark)
    if version < base.version:
        raise LogError(
            f"the state at version {version} {fate_of(version, base)}, expected version "
            f"{base.version} or later"
        )
    nodes, subscriptions, point = Nodes(base.keys), dict(base.subscriptions), base.point
    dialects = dict(base.dialects)
    walk = GroupLog(folder / CHANGES).walk(base.point.at, end_of(mark))
    for behind, records in read_groups(walk, base.point.version, folder, mark.value):
        for record in records:
            if base.version < record.version <= version:
                nodes.apply(record, folder)
                apply(record, subscriptions, dialects)
        if behind.version > version:
            break
        point = behind
    keys = list(nodes.numbers)
    return Checkpoint(version, mark.log, point, subscriptions, keys, base.lost, dialects)


def fate_of(version: int, base: Checkpoint) -> str:
    """Why a version that is older than the checkpoint is not available."""
    if any(first <= version <= last for first, last in base.lost):
        return "was lost when the log was repaired"
    return "was dropped"


def _digest(body: bytes) -> bytes:
    return blake2b(body, digest_size=16).digest()
