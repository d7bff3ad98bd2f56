"""The records of a batch of entries; those of a block of notifications are created at once.

Each record of a block equals the one that `entries.encode` creates for the notification alone.
Kernels write the records of a block in one buffer, with their heads and checksums.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import numpy as np
import numpy.typing as npt

from tidings.routing.root import Block
from tidings.store.groups import Packed
from tidings.store.groups.layout import RECORD_HEAD
from tidings.store.journal.entries import HEAD, NOTIFICATION, JournalEntry, Taken, encode
from tidings.store.journal.mark_index import SpanColumn
from tidings.store.journal.rows import Rows, encode_rows, entry_of

Numbers = npt.NDArray[np.int64]


class PackedBlock(Packed, frozen=True):
    """The records of a block, and what the index of marks needs."""

    serial: int  # the last one
    marks: bytes
    spans: Numbers  # the spans of the records with marks


def encode_all(things: Iterable[JournalEntry]) -> list[bytes | Packed]:
    """The records of entries, in order."""
    found: list[bytes | Packed] = []
    for thing in things:
        if isinstance(thing, Block):
            if len(thing):
                found.append(encode_block(thing))
            if thing.progress is not None:
                found.append(encode(Taken(thing.source, thing.progress)))
        elif isinstance(thing, Rows):
            entries = [entry_of(*msgspec.structs.astuple(row)) for row in thing.rows]
            found += encode_rows(thing.first, entries)
        else:
            found.append(encode(thing))
    return found


def encode_block(block: Block) -> PackedBlock:
    from tidings.store.journal import block_kernels as kernels  # imported late: Numba compiles it

    marks, matched, payloads = block.marks, block.matched, block.payloads
    name = np.frombuffer(block.source.encode(), np.uint8)
    size = len(block) * (RECORD_HEAD + HEAD.size + len(name)) + len(block.pairs)
    size += 8 * len(matched.nodes) + int(payloads.starts[-1] - payloads.starts[0])
    data, heads = np.empty(size, np.uint8), np.empty((len(block), RECORD_HEAD), np.uint8)
    spans = np.empty((len(block), len(SpanColumn)), np.int64)
    used, there = kernels.write_records(
        kind=NOTIFICATION[0],
        name=name,
        serial=block.serial,
        stamp=block.stamp,
        mark_starts=marks.starts,
        marks=block.pairs,
        matched_starts=matched.starts,
        matched=as_bytes(matched.nodes),
        payload_starts=payloads.starts,
        payloads=np.frombuffer(payloads.data, np.uint8),
        tables=kernels.TABLES,
        out=data,
        heads=heads,
        spans=spans,
    )
    packed = data[:used].data, heads.tobytes(), block.last_serial, block.pairs.tobytes()
    return PackedBlock(*packed, spans[:there])


def as_bytes(numbers: Numbers) -> npt.NDArray[np.uint8]:
    return np.ascontiguousarray(numbers, "<i8").view(np.uint8)
