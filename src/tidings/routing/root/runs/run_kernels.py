"""Kernels that read the frames of publications, and write their bodies.

A publication is an array of twelve elements in MessagePack: "publish", the publisher's name, its
stamp, the first unsettled stamp, the attributes, the payload, whether subscribers get the
attributes, subject, time, piece, fast, the tag. The usual decoder handles frames of any other form,
and reports what is wrong with them. The usual decoder also handles publications sent in pieces,
publications sent fast, and subjects that are not ASCII.

Shapes (n frames): data uint8, the bytes of a buffer; starts int64 [n]; kinds uint8 [n]; columns
int64 [n, len(Column)], see frame_columns.py. Offsets, ends and sizes are integers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tidings.matching.jit import kernel
from tidings.routing.root.runs.frame_columns import Column

OTHER, SAME, NEW = 0, 1, 2  # not read; same publisher as the frame before; another one
FRONT = 12  # bytes of a body before the metadata: the magic bytes, and a size


@kernel
def read_number(data: Any, at: int, size: int) -> Any:
    """The big-endian number in `size` bytes."""
    found = np.int64(0)
    for one in range(size):
        found = found << 8 | np.int64(data[at + one])
    return found


@kernel
def read_integer(data: Any, at: int, end: int) -> Any:
    """An integer of at least 0 and the offset after it; the offset is -1 if there is no such
    integer."""
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
    if found < 0:  # larger than a message may contain
        return found, -1
    return found, at + 1 + size


@kernel
def read_size(data: Any, at: int, end: int, least: int) -> Any:
    """The size of a string or byte string, and the offset after the size; the offset is -1 if there
    is no such size. `least` is the MessagePack kind whose size field takes one byte."""
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
def read_subject(data: Any, at: int, end: int, most: int) -> Any:
    """The offset after a string; -1 unless it is an ASCII string of at most `most` bytes."""
    if at >= end:
        return -1
    kind = np.int64(data[at])
    if 0xA0 <= kind < 0xC0:
        size, at = kind - 0xA0, at + 1
    else:
        size, at = read_size(data, at, end, 0xD9)
    if at < 0 or size > most or at + size > end:
        return -1
    for one in range(size):
        if data[at + one] >= 0x80:
            return -1
    return at + size


@kernel
def read_frames(
    data: Any, starts: Any, most_name: int, most_subject: int, most_tag: int, columns: Any,
    kinds: Any,
) -> Any:  # fmt: skip
    """Read the frames that begin at `starts`; returns how many are publications.

    Sets columns and kinds. Names have at most `most_name` bytes, subjects `most_subject`, and tags
    `most_tag`.
    """
    many = 0
    last = -1  # the row of the previous frame, if that frame is a publication
    tag = b"\x9c\xa7publish"
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
        columns[row, Column.NAME], columns[row, Column.NAME_END] = at, at + size
        stamp, at = read_integer(data, at + size, end)
        if at < 0:
            continue
        first, at = read_integer(data, at, end)
        if at < 0:
            continue
        columns[row, Column.STAMP], columns[row, Column.UNSETTLED] = stamp, first
        columns[row, Column.CONTENT_HEAD] = at
        size, at = read_size(data, at, end, 0xC4)
        if at < 0 or at + size > end:
            continue
        columns[row, Column.CONTENT], columns[row, Column.CONTENT_END] = at, at + size
        size, at = read_size(data, at + size, end, 0xC4)
        if at < 0 or at + size + 1 > end:
            continue
        columns[row, Column.PAYLOAD], columns[row, Column.PAYLOAD_END] = at, at + size
        at += size
        if data[at] != 0xC2 and data[at] != 0xC3:
            continue
        columns[row, Column.SHARES] = np.int64(data[at]) - 0xC2
        columns[row, Column.SUBJECT] = at + 1
        at = read_subject(data, at + 1, end, most_subject)
        if at < 0:
            continue
        _, at = read_integer(data, at, end)
        if at < 0 or at + 2 >= end or data[at] != 0xC0 or data[at + 1] != 0xC2:
            continue
        columns[row, Column.TIME_END] = at
        size, at = read_size(data, at + 2, end, 0xC4)
        if at < 0 or size > most_tag or at + size != end:
            continue
        columns[row, Column.TAG], columns[row, Column.TAG_END] = at, end
        many += 1
        last = row
        kinds[row] = 2
        if previous >= 0:
            name = columns[row, Column.NAME]
            size = columns[row, Column.NAME_END] - name
            other = columns[previous, Column.NAME]
            if columns[previous, Column.NAME_END] - other == size:
                same = True
                for one in range(size):
                    if data[name + one] != data[other + one]:
                        same = False
                        break
                if same:
                    kinds[row] = 1
    return many


@kernel
def measure_bodies(data: Any, columns: Any, magic: Any, places: Any) -> None:
    """Find the offset of each body if the bodies are written one after another; see bodies.py.

    magic uint8: the first bytes of a body with metadata. Sets places int64 [n + 1].
    """
    places[0] = 0
    for row in range(len(columns)):
        size = columns[row, Column.PAYLOAD_END] - columns[row, Column.PAYLOAD]
        shares = columns[row, Column.SHARES] == 1
        first, end = columns[row, Column.SUBJECT], columns[row, Column.TIME_END]
        told = shares or end - first != 2 or data[first] != 0xA0 or data[first + 1] != 0
        if not told and size >= len(magic):
            told = True
            for one in range(len(magic)):
                if data[columns[row, Column.PAYLOAD] + one] != magic[one]:
                    told = False
                    break
        if told:
            content = (
                columns[row, Column.CONTENT_END] - columns[row, Column.CONTENT_HEAD]
                if shares
                else 1
            )
            size += FRONT + 3 + content + end - first
        places[row + 1] = places[row] + size


@kernel
def write_bodies(data: Any, columns: Any, magic: Any, places: Any, out: Any) -> None:
    """Write the bodies that `measure_bodies` measured. The metadata is an array of five elements:
    the attributes or nil, the subject, the time, nil, nil. Sets out uint8."""
    for row in range(len(columns)):
        to = places[row]
        size = columns[row, Column.PAYLOAD_END] - columns[row, Column.PAYLOAD]
        told = places[row + 1] - to - size - FRONT
        if told > 0:
            for one in range(len(magic)):
                out[to + one] = magic[one]
            to += len(magic)
            for one in range(4):
                out[to + one] = told >> 8 * one & 0xFF
            to += 4
            out[to] = 0x95
            to += 1
            if columns[row, Column.SHARES] == 1:
                for at in range(
                    columns[row, Column.CONTENT_HEAD], columns[row, Column.CONTENT_END]
                ):
                    out[to] = data[at]
                    to += 1
            else:
                out[to] = 0xC0
                to += 1
            for at in range(columns[row, Column.SUBJECT], columns[row, Column.TIME_END]):
                out[to] = data[at]
                to += 1
            out[to] = 0xC0
            out[to + 1] = 0xC0
            to += 2
        for at in range(columns[row, Column.PAYLOAD], columns[row, Column.PAYLOAD_END]):
            out[to] = data[at]
            to += 1
