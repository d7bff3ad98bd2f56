"""The records of a block of notifications, all created at once.

Each record equals the one that `things.encode` creates for the notification alone. Kernels lay them
out in one buffer, with their heads and checksums.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tidings.routing.root import Block
from tidings.store.groups import Packed
from tidings.store.groups.layout import RECORD_HEAD

Numbers = npt.NDArray[np.int64]

FRONT = np.dtype(
    {
        "names": ["length", "crc", "kind", "serial", "stamp", "name", "marks", "matched"],
        "formats": ["<u4", "<u4", "S1", "<i8", "<i8", "<u4", "<u4", "<u4"],
        "offsets": [0, 4, 8, 9, 17, 25, 29, 33],
        "itemsize": 37,
    }
)
"""The head of a record, and of the notification in it."""


class PackedBlock(Packed, frozen=True):
    """The records of a block, and what the index of marks needs."""

    serial: int  # the last one
    marks: bytes
    spans: Numbers  # for each record with marks: its start, its end, and its number of marks


def encode_block(block: Block) -> PackedBlock:
    from tidings.store.journal import block_kernels as kernels  # compiled, so loaded when needed

    marks, matched, payloads = block.marks, block.matched, block.payloads
    name = np.frombuffer(block.source.encode(), np.uint8)
    fronts = np.zeros(len(block), FRONT)
    fronts["kind"] = b"N"
    fronts["serial"] = np.arange(block.serial, block.serial + len(block))
    fronts["stamp"] = np.arange(block.stamp, block.stamp + len(block))
    fronts["name"] = len(name)
    many = fronts["marks"] = np.diff(marks.starts)
    fronts["matched"] = np.diff(matched.starts)
    # a notification without marks is stored without its payload
    sizes = np.where(many > 0, np.diff(payloads.starts), 0)
    lengths = FRONT.itemsize - RECORD_HEAD + len(name) + 16 * many
    lengths += 8 * np.diff(matched.starts) + sizes
    fronts["length"] = lengths
    ends = np.cumsum(lengths + RECORD_HEAD)
    starts = ends - lengths
    data, heads = np.empty(int(ends[-1]), np.uint8), np.empty((len(block), RECORD_HEAD), np.uint8)
    kernels.lay_out(
        data, starts - RECORD_HEAD, fronts.view(np.uint8).reshape(len(block), -1), name,
        marks.starts, block.pairs, matched.starts, as_bytes(matched.nodes),
        payloads.starts, np.frombuffer(payloads.data, np.uint8), sizes, kernels.TABLES,
        heads,
    )  # fmt: skip
    there = many > 0
    spans = np.stack([starts[there], ends[there], many[there]], axis=1)
    return PackedBlock(data.data, heads.tobytes(), block.last_serial, block.pairs.tobytes(), spans)


def as_bytes(numbers: Numbers) -> npt.NDArray[np.uint8]:
    return np.ascontiguousarray(numbers, "<i8").view(np.uint8)
