"""A kernel that lays out the frames of a block of notifications."""

from __future__ import annotations

from typing import Any

from tidings.matching.jit import kernel


@kernel
def lay_out(
    out: Any, places: Any, rows: Any, fronts: Any, name: Any, mark_starts: Any, marks: Any,
    which: Any, label_starts: Any, labels: Any, payload_starts: Any, payloads: Any,
) -> None:  # fmt: skip
    """Lay out n frames, one after the other.

    places int64 [n]: where each begins; rows int64 [n]: which of the m notifications it is; fronts
    uint8 [n, 40]; name uint8; mark_starts int64 [m + 1]; marks uint8, 16 bytes for each of k marks;
    which int64 [k]: the position of each mark's node among d nodes; label_starts int64 [d + 1] and
    labels uint8: the labels of these; payload_starts int64 [m + 1] and payloads uint8. Sets out
    uint8.
    """
    width = fronts.shape[1]
    for one in range(len(rows)):
        row, at = rows[one], places[one]
        out[at : at + width] = fronts[one]
        at += width
        first, end = mark_starts[row], mark_starts[row + 1]
        size = 16 * (end - first)
        out[at : at + size] = marks[16 * first : 16 * end]
        at += size
        for mark in range(first, end):
            begin = label_starts[which[mark]]
            size = label_starts[which[mark] + 1] - begin
            out[at : at + size] = labels[begin : begin + size]
            at += size
        out[at : at + len(name)] = name
        at += len(name)
        begin, stop = payload_starts[row], payload_starts[row + 1]
        out[at : at + stop - begin] = payloads[begin:stop]
