"""The frames of many notifications, all created at once.

Each frame is the same as the one that `frames.encode_marked` would create.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

import msgspec
import numpy as np

from tidings.routing.protocol import frames
from tidings.routing.root import Block


class FrameRun(msgspec.Struct, frozen=True):
    """Consecutive frames of notifications, and where each begins and ends."""

    data: bytes
    starts: list[int]
    ends: list[int]


def encode_block(block: Block, epoch: int, labels: Sequence[bytes]) -> FrameRun:
    """The frames of the notifications of a block that have marks. `labels` are the encoded labels
    of the block's distinct nodes."""
    # the module has kernels, so it is imported only when needed
    from tidings.broker.outgoing_frames import frame_kernels as kernels

    marks, payloads = block.marks, block.payloads
    name = np.frombuffer(block.source.encode(), np.uint8)
    label_starts = np.zeros(len(labels) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, labels), np.int64, len(labels)), out=label_starts[1:])
    size = len(block) * (frames.HEAD + len(name)) + len(block.pairs)
    size += int(np.diff(label_starts)[marks.which].sum())
    size += int(payloads.starts[-1] - payloads.starts[0])
    data, places = np.empty(size, np.uint8), np.empty((2, len(block)), np.int64)
    starts, ends = places
    many = kernels.write_frames(
        kind=frames.NOTIFICATION,
        version=frames.VERSION,
        name=name,
        epoch=np.uint64(epoch),
        serial=block.serial,
        stamp=block.stamp,
        mark_starts=marks.starts,
        marks=block.pairs,
        which=marks.which,
        label_starts=label_starts,
        labels=np.frombuffer(b"".join(labels), np.uint8),
        payload_starts=payloads.starts,
        payloads=np.frombuffer(payloads.data, np.uint8),
        out=data,
        starts=starts,
        ends=ends,
    )
    used = int(ends[many - 1]) if many else 0
    return FrameRun(data[:used].tobytes(), starts[:many].tolist(), ends[:many].tolist())


def join_frames(released: Iterable[bytes | FrameRun]) -> Iterator[FrameRun]:
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
