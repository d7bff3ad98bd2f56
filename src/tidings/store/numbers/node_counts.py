"""How often nodes occur, as bytes: two columns of integers, compressed.

    {7: 3, 9: 1}  ──>  nodes 7, +2; counts 3, 1  ──>  bytes

A batch may have a hundred thousand nodes, and their counts are written for every batch: about 3
bytes for each node, where JSON takes 10.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping

import numpy as np

FAST = 1  # the compression level


def pack_counts(counts: Mapping[int, int]) -> bytes:
    """The counts as bytes, in the order of nodes."""
    nodes = np.fromiter(counts, np.int64, len(counts))
    order = np.argsort(nodes, kind="stable")
    values = np.fromiter(counts.values(), np.int64, len(counts))[order]
    steps = np.diff(nodes[order], prepend=0)
    return zlib.compress(steps.astype("<i8").tobytes() + values.astype("<i8").tobytes(), FAST)


def unpack_counts(data: bytes) -> dict[int, int]:
    """Decode counts; raises ValueError if the bytes are not packed counts."""
    if not data:
        return {}
    try:
        steps, values = np.frombuffer(zlib.decompress(data), "<i8").reshape(2, -1)
    except zlib.error as problem:
        raise ValueError(f"found {len(data)} bytes, expected packed counts: {problem}") from None
    return dict(zip(np.cumsum(steps).tolist(), values.tolist(), strict=True))
