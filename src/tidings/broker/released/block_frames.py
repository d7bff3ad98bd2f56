"""The frames of many notifications, all created at once.

Each frame is the same as the one that `frames.encode_marked` creates for its notification.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

import msgspec
import numpy as np

from tidings.routing.protocol import frames
from tidings.routing.root import Block

FRONT = np.dtype(
    {
        "names": ["length", "kind", "version", "marks", "labels", "name", "epoch", "serial",
                  "stamp"],
        "formats": ["<u4", "u1", "u1", "<u2", "<u4", "<u4", "<u8", "<u8", "<u8"],
        "offsets": [0, 4, 5, 6, 8, 12, 16, 24, 32],
        "itemsize": frames.HEAD,
    }
)  # fmt: skip


class FrameRun(msgspec.Struct, frozen=True):
    """Consecutive frames of notifications, and where each begins and ends."""

    data: bytes
    starts: list[int]
    ends: list[int]


def encode_block(block: Block, epoch: int, labels: Sequence[bytes]) -> FrameRun:
    """The frames of the notifications of a block that have marks. `labels` are the encoded labels
    of its distinct nodes."""
    # the module has kernels, so it is imported only when needed
    from tidings.broker.released import frame_kernels as kernels

    marks, payloads = block.marks, block.payloads
    rows = np.flatnonzero(np.diff(marks.starts))
    name = np.frombuffer(block.source.encode(), np.uint8)
    label_starts = np.zeros(len(labels) + 1, np.int64)
    np.cumsum([len(one) for one in labels], out=label_starts[1:])
    sizes = np.diff(label_starts)[marks.which]
    starts = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=starts[1:])
    of_labels = np.diff(starts[marks.starts])[rows]
    many = np.diff(marks.starts)[rows]
    fronts = np.zeros(len(rows), FRONT)
    lengths = frames.HEAD + 16 * many + of_labels + len(name) + np.diff(payloads.starts)[rows]
    fronts["length"], fronts["kind"], fronts["version"] = (
        lengths - 4, frames.NOTIFICATION, frames.VERSION
    )  # fmt: skip
    fronts["marks"], fronts["labels"], fronts["name"] = many, of_labels, len(name)
    fronts["epoch"], fronts["serial"] = epoch, block.serial + rows
    fronts["stamp"] = block.stamp + rows
    ends = np.cumsum(lengths)
    data = np.empty(int(ends[-1]), np.uint8)
    kernels.lay_out(
        data, ends - lengths, rows, fronts.view(np.uint8).reshape(len(rows), -1), name,
        marks.starts, block.pairs, marks.which, label_starts,
        np.frombuffer(b"".join(labels), np.uint8), payloads.starts,
        np.frombuffer(payloads.data, np.uint8),
    )  # fmt: skip
    return FrameRun(data.tobytes(), (ends - lengths).tolist(), ends.tolist())


def joined_frames(released: Iterable[bytes | FrameRun]) -> Iterator[FrameRun]:
    """Join single frames into runs, in the same order."""
    single: list[bytes] = []
    for one in released:
        if isinstance(one, FrameRun):
            if single:
                yield _join(single)
                single = []
            yield one
        else:
            single.append(one)
    if single:
        yield _join(single)


def _join(single: Sequence[bytes]) -> FrameRun:
    ends = list(accumulate(map(len, single)))
    return FrameRun(b"".join(single), [0, *ends[:-1]], ends)
