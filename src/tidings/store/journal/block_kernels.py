"""Kernels that write the records of a block, with their checksums.

The checksum is that of zlib, computed eight bytes at a time with eight tables ("slicing by 8"):
TABLES[k][b] is the contribution of the byte b if k more bytes follow it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings.matching.jit import copy_bytes, kernel, put_number
from tidings.store.journal.mark_index import SpanColumn

POLYNOMIAL = 0xEDB88320
CRC_AT, RECORD_AT = 4, 8  # offsets from the beginning of a record's head


def _tables() -> Any:
    found = np.zeros((8, 256), np.uint32)
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = value >> 1 ^ POLYNOMIAL * (value & 1)
        found[0, byte] = value
    for at in range(1, 8):
        found[at] = found[at - 1] >> 8 ^ found[0, found[at - 1] & 0xFF]
    return found


TABLES = _tables()


@kernel
def checksum(data: Any, start: int, end: int, tables: Any) -> Any:
    """The checksum of data[start : end]: data uint8, tables uint32 [8, 256]."""
    crc = np.uint32(0xFFFFFFFF)
    at: Any = start
    low, eight = np.uint32(0xFF), np.uint32(8)
    while at + 8 <= end:
        crc ^= (
            np.uint32(data[at]) | np.uint32(data[at + 1]) << np.uint32(8)
            | np.uint32(data[at + 2]) << np.uint32(16) | np.uint32(data[at + 3]) << np.uint32(24)
        )  # fmt: skip
        crc = (
            tables[7, crc & low] ^ tables[6, crc >> eight & low]
            ^ tables[5, crc >> np.uint32(16) & low] ^ tables[4, crc >> np.uint32(24)]
            ^ tables[3, data[at + 4]] ^ tables[2, data[at + 5]]
            ^ tables[1, data[at + 6]] ^ tables[0, data[at + 7]]
        )  # fmt: skip
        at += 8
    while at < end:
        crc = tables[0, (crc ^ np.uint32(data[at])) & low] ^ crc >> eight
        at += 1
    return crc ^ np.uint32(0xFFFFFFFF)


@kernel
def write_records(
    kind: int, name: Any, serial: int, stamp: int, mark_starts: Any, marks: Any,
    matched_starts: Any, matched: Any, payload_starts: Any, payloads: Any, tables: Any, out: Any,
    heads: Any, spans: Any,
) -> Any:  # fmt: skip
    """Write n records, one after another, with their heads and checksums. A notification without
    marks is stored without its payload. Returns the size of all records, and how many have marks.

    kind: the byte of notifications; name uint8; serial, stamp: those of the first notification;
    mark_starts, matched_starts, payload_starts int64 [n + 1]; marks (16 bytes each), matched (8
    bytes each), payloads uint8. The kernel sets these arrays: out uint8; heads uint8 [n, 8]: the
    heads of the records; spans int64 [n, len(SpanColumn)]: a row for each record with marks.
    """
    at, there = 0, 0
    for row in range(len(heads)):
        begin = at
        many = mark_starts[row + 1] - mark_starts[row]
        above = matched_starts[row + 1] - matched_starts[row]
        size = payload_starts[row + 1] - payload_starts[row] if many else 0
        at = put_number(out, begin + RECORD_AT, kind, 1)
        at = put_number(out, at, serial + row, 8)
        at = put_number(out, at, stamp + row, 8)
        at = put_number(out, at, len(name), 4)
        at = put_number(out, at, many, 4)
        at = put_number(out, at, above, 4)
        at = copy_bytes(out, at, name, 0, len(name))
        at = copy_bytes(out, at, marks, 16 * mark_starts[row], 16 * many)
        at = copy_bytes(out, at, matched, 8 * matched_starts[row], 8 * above)
        at = copy_bytes(out, at, payloads, payload_starts[row], size)
        put_number(out, begin, at - begin - RECORD_AT, 4)
        put_number(out, begin + CRC_AT, checksum(out, begin + RECORD_AT, at, tables), 4)
        for one in range(RECORD_AT):
            heads[row, one] = out[begin + one]
        if many:
            spans[there, SpanColumn.START] = begin + RECORD_AT
            spans[there, SpanColumn.END] = at
            spans[there, SpanColumn.MARKS] = many
            there += 1
    return at, there
