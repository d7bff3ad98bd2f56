"""Kernels that read the frames of publications, and copy their payloads.

A publication is an array of six in MessagePack: "publish", the publisher's name, its stamp, the
first unsettled stamp, the attributes, the payload. A frame in another form is left to the usual
decoder, which also says what is wrong with it.

Shapes (n frames): data uint8, the bytes of a buffer; starts int64 [n]; columns int64 [n, 8], whose
rows are name, its end, stamp, first, attributes, their end, payload, its end; kinds uint8 [n].
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings.matching.jit import kernel

OTHER, SAME, NEW = 0, 1, 2  # not read; of the same publisher as the frame before; of another one
COLUMNS = 8


@kernel
def read_number(data: Any, at: int, size: int) -> Any:
    """`size` bytes as a number, the highest first."""
    found = np.int64(0)
    for one in range(size):
        found = found << 8 | np.int64(data[at + one])
    return found


@kernel
def read_integer(data: Any, at: int, end: int) -> Any:
    """A number of at least 0 and the offset behind it; -1 if it is not one."""
    if at >= end:
        return np.int64(0), -1
    kind = np.int64(data[at])
    if kind < 0x80:
        return kind, at + 1
    if kind < 0xCC or kind > 0xCF:
        return np.int64(0), -1
    size = 1 << (kind - 0xCC)
    if at + 1 + size > end:
        return np.int64(0), -1
    found = read_number(data, at + 1, size)
    if found < 0:  # above what messages may have
        return found, -1
    return found, at + 1 + size


@kernel
def read_size(data: Any, at: int, end: int, least: int) -> Any:
    """The size of a string or of bytes whose kind with one byte of size is `least`, and the offset
    behind it; -1 if it is not one."""
    if at >= end:
        return np.int64(0), -1
    kind = np.int64(data[at])
    if kind < least or kind > least + 2:
        return np.int64(0), -1
    size = 1 << (kind - least)
    if at + 1 + size > end:
        return np.int64(0), -1
    return read_number(data, at + 1, size), at + 1 + size


@kernel
def read_frames(data: Any, starts: Any, most_name: int, columns: Any, kinds: Any) -> Any:
    """Read the frames that begin at `starts`; returns how many are publications.

    Sets columns and kinds. Names have at most `most_name` bytes.
    """
    many = 0
    last = -1  # the frame before, if it is a publication
    tag = b"\x96\xa7publish"
    for row in range(len(starts)):
        start = starts[row]
        length = (
            np.int64(data[start]) | np.int64(data[start + 1]) << 8
            | np.int64(data[start + 2]) << 16 | np.int64(data[start + 3]) << 24
        )  # fmt: skip
        at = start + 6
        end = start + 4 + length
        kinds[row] = 0
        previous, last = last, -1
        if data[start + 4] != 2 or at + len(tag) >= end:
            continue
        is_one = True
        for one in range(len(tag)):
            if data[at + one] != tag[one]:
                is_one = False
                break
        if not is_one:
            continue
        at += len(tag)
        kind = np.int64(data[at])
        if 0xA0 <= kind < 0xC0:
            size, at = kind - 0xA0, at + 1
        else:
            size, at = read_size(data, at, end, 0xD9)
        if at < 0 or size > most_name or at + size > end:
            continue
        columns[row, 0], columns[row, 1] = at, at + size
        stamp, at = read_integer(data, at + size, end)
        if at < 0:
            continue
        first, at = read_integer(data, at, end)
        if at < 0:
            continue
        columns[row, 2], columns[row, 3] = stamp, first
        size, at = read_size(data, at, end, 0xC4)
        if at < 0 or at + size > end:
            continue
        columns[row, 4], columns[row, 5] = at, at + size
        size, at = read_size(data, at + size, end, 0xC4)
        if at < 0 or at + size != end:
            continue
        columns[row, 6], columns[row, 7] = at, end
        many += 1
        last = row
        kinds[row] = 2
        if previous >= 0:
            name = columns[row, 0]
            size = columns[row, 1] - name
            other = columns[previous, 0]
            if columns[previous, 1] - other == size:
                same = True
                for one in range(size):
                    if data[name + one] != data[other + one]:
                        same = False
                        break
                if same:
                    kinds[row] = 1
    return many


@kernel
def gather(data: Any, firsts: Any, places: Any, out: Any) -> None:
    """Copy n pieces of data, one after the other.

    firsts int64 [n]: where each begins in data; places int64 [n + 1]: where it goes. Sets out
    uint8.
    """
    for row in range(len(firsts)):
        to, source = np.uint64(places[row]), np.uint64(firsts[row])
        for one in range(np.uint64(places[row + 1] - places[row])):
            out[to + one] = data[source + one]
