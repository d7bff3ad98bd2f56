"""A kernel that writes the frames of a block of notifications.

The arguments are not grouped into named tuples: Numba would take 3 µs longer for each block, and a
block may have only one notification.
"""

from __future__ import annotations

from typing import Any

from tidings.matching.jit import copy_bytes, kernel, put_number


@kernel
def write_frames(
    kind: int, version: int, name: Any, epoch: Any, serial: int, stamp: int, mark_starts: Any,
    marks: Any, which: Any, label_starts: Any, labels: Any, payload_starts: Any, payloads: Any,
    out: Any, starts: Any, ends: Any,
) -> Any:  # fmt: skip
    """Write the frames of the notifications that have marks, one after another; return their
    number.

    kind, version: the bytes of the frames; name uint8; epoch uint64; serial, stamp: those of the
    first of m notifications; mark_starts int64 [m + 1]; marks uint8, 16 bytes for each of k marks;
    which int64 [k]: the position of each mark's node among d nodes; label_starts int64 [d + 1] and
    labels uint8: the labels of these nodes; payload_starts int64 [m + 1] and payloads uint8. Writes
    the frames into out (uint8), and into starts and ends (int64 [m]) where each frame begins and
    ends.
    """
    at, found = 0, 0
    for row in range(len(mark_starts) - 1):
        first, end = mark_starts[row], mark_starts[row + 1]
        if first == end:
            continue
        begin = at
        at = put_number(out, begin + 4, kind, 1)
        at = put_number(out, at, version, 1)
        at = put_number(out, at, end - first, 2)
        label_size = at
        at = put_number(out, at + 4, len(name), 4)
        at = put_number(out, at, epoch, 8)
        at = put_number(out, at, serial + row, 8)
        at = put_number(out, at, stamp + row, 8)
        at = copy_bytes(out, at, marks, 16 * first, 16 * (end - first))
        of_labels = at
        for mark in range(first, end):
            start = label_starts[which[mark]]
            at = copy_bytes(out, at, labels, start, label_starts[which[mark] + 1] - start)
        put_number(out, label_size, at - of_labels, 4)
        at = copy_bytes(out, at, name, 0, len(name))
        size = payload_starts[row + 1] - payload_starts[row]
        at = copy_bytes(out, at, payloads, payload_starts[row], size)
        put_number(out, begin, at - begin - 4, 4)
        starts[found], ends[found] = begin, at
        found += 1
    return found
