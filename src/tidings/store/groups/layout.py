"""The byte layout of a log of groups.

    segment   magic, id of the log, number of the first group, chain before it, crc
    group     magic, records, number, chain before it, size, crc of the record heads, chain
    record    length, crc                                                           then its bytes

The chain of a group is a digest of its head, which contains the chain of the previous group. The
head also contains a checksum of the record heads, and these contain the checksums of the records.
So any change, swap or removal is noticed: a checksum differs, or the next group contains another
chain. A corrupt record does not affect other records.

The id of the log is the key of the digests. Publishers and subscribers don't know this key, so the
content of a record can never be mistaken for a group, not even in a search through a damaged log.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from hashlib import blake2b
from typing import NamedTuple
from zlib import crc32

import msgspec

SEGMENT_MAGIC = b"tidings\x01"
GROUP_MAGIC = b"GRP\x01"
MOST_BYTES = 1 << 30  # of a group

_SEGMENT = struct.Struct("<8sQQQ")
_GROUP = struct.Struct("<4sIQQII")
_CHAIN = struct.Struct("<Q")
_RECORD = struct.Struct("<II")
_CRC = struct.Struct("<I")
SEGMENT_HEAD = _SEGMENT.size + _CRC.size
GROUP_HEAD = _GROUP.size + _CHAIN.size
RECORD_HEAD = _RECORD.size


class Packed(msgspec.Struct, frozen=True):
    """Many records in one buffer, each after its head. A caller with very many records lays out all
    of them at once."""

    data: bytes | bytearray | memoryview
    heads: bytes  # all heads, one after another

    def __len__(self) -> int:
        return len(self.data)

    @property
    def count(self) -> int:
        return len(self.heads) // RECORD_HEAD


class SegmentHead(NamedTuple):
    """The head of a segment."""

    log: int
    first: int  # the number of the first group in the segment
    chain: int  # the chain of the group before the first one


class GroupHead(NamedTuple):
    """The head of a group."""

    records: int
    number: int
    before: int  # the chain of the previous group
    size: int  # the number of bytes of the records with their heads
    heads: int  # checksum of the record heads
    chain: int  # of this group


def encode_segment_head(head: SegmentHead) -> bytes:
    body = _SEGMENT.pack(SEGMENT_MAGIC, *head)
    return body + _CRC.pack(crc32(body))


def decode_segment_head(data: bytes) -> SegmentHead | None:
    """The head of a segment, or None if the data is not one."""
    body = data[: _SEGMENT.size]
    if len(data) < SEGMENT_HEAD or data[_SEGMENT.size : SEGMENT_HEAD] != _CRC.pack(crc32(body)):
        return None
    magic, *rest = _SEGMENT.unpack(body)
    return SegmentHead(*rest) if magic == SEGMENT_MAGIC else None


def encode_group(
    log: int, number: int, before: int, records: Sequence[bytes | Packed]
) -> tuple[bytes, int]:
    """The bytes of a group, and its chain."""
    parts: list[bytes | bytearray | memoryview] = []
    heads: list[bytes] = []
    count = 0
    for record in records:
        if isinstance(record, Packed):
            parts.append(record.data)
            heads.append(record.heads)
            count += record.count
        else:
            heads.append(_RECORD.pack(len(record), crc32(record)))
            parts += heads[-1], record
            count += 1
    size = sum(map(len, parts))
    if size > MOST_BYTES:
        raise ValueError(f"found a group of {size:,} bytes, expected at most {MOST_BYTES:,}")
    body = _GROUP.pack(GROUP_MAGIC, count, number, before, size, crc32(b"".join(heads)))
    chain = _chain_of(log, body)
    return b"".join((body, _CHAIN.pack(chain), *parts)), chain


def decode_group_head(log: int, data: bytes, at: int) -> GroupHead | None:
    """The head of the group at an offset; None if there is none, or if it is corrupt or belongs to
    another log."""
    if data[at : at + 4] != GROUP_MAGIC or len(data) - at < GROUP_HEAD:
        return None
    body = data[at : at + _GROUP.size]
    (chain,) = _CHAIN.unpack_from(data, at + _GROUP.size)
    if chain != _chain_of(log, body):
        return None
    _, records, number, before, size, heads = _GROUP.unpack(body)
    return GroupHead(records, number, before, size, heads, chain)


def _chain_of(log: int, body: bytes) -> int:
    digest = blake2b(body, digest_size=8, key=_CHAIN.pack(log)).digest()
    return int(_CHAIN.unpack(digest)[0])


def split_records(data: bytes, at: int, head: GroupHead) -> list[tuple[int, int]] | None:
    """The start and end of each record, without its head, in the group whose head is at an offset;
    None if the record heads are corrupt or truncated."""
    found: list[tuple[int, int]] = []
    heads: list[bytes] = []
    start = at + GROUP_HEAD
    end = start + head.size
    if end > len(data):
        return None
    for _ in range(head.records):
        if end - start < RECORD_HEAD:
            return None
        heads.append(data[start : start + RECORD_HEAD])
        length, _ = _RECORD.unpack(heads[-1])
        start += RECORD_HEAD
        if end - start < length:
            return None
        found.append((start, start + length))
        start += length
    return found if start == end and crc32(b"".join(heads)) == head.heads else None


def record_at(data: bytes, start: int, end: int) -> bytes | None:
    """The record between two offsets, without its head; None if it is corrupt."""
    record = data[start:end]
    return record if data[start - RECORD_HEAD : start] == _RECORD.pack(end - start, crc32(record)) \
        else None  # fmt: skip
