"""A kernel that lays out the frames of a block of notifications."""

from __future__ import annotations

from typing import Any

from tidings.matching.jit import copy_bytes, kernel


@kernel
def lay_out(
    out: Any, places: Any, rows: Any, fronts: Any, name: Any, mark_starts: Any, marks: Any,
    which: Any, label_starts: Any, labels: Any, payload_starts: Any, payloads: Any,
) -> None:  # fmt: skip
    """Lay out n frames, one after another.

    places int64 [n]: where each begins; rows int64 [n]: the row of its notification, out of m;
    fronts uint8 [n, 40]; name uint8; mark_starts int64 [m + 1]; marks uint8, 16 bytes for each of k
    marks; which int64 [k]: the position of each mark's node among d nodes; label_starts int64 [d +
    1] and labels uint8: the labels of these nodes; payload_starts int64 [m + 1] and payloads uint8.
    Sets out uint8.
    """
    width = fronts.shape[1]
    flat = fronts.ravel()
    for one in range(len(rows)):
        row = rows[one]
        first, end = mark_starts[row], mark_starts[row + 1]
        at = copy_bytes(out, places[one], flat, one * width, width)
        at = copy_bytes(out, at, marks, 16 * first, 16 * (end - first))
        for mark in range(first, end):
            begin = label_starts[which[mark]]
            at = copy_bytes(out, at, labels, begin, label_starts[which[mark] + 1] - begin)
        at = copy_bytes(out, at, name, 0, len(name))
        begin = payload_starts[row]
        at = copy_bytes(out, at, payloads, begin, payload_starts[row + 1] - begin)
