"""A part of a tagged batch: many notifications, as columns.

    node_starts     0  2  3  3
    nodes           5  9  5
    payload_starts  0  11 20 31
    payloads        ...

Notification i has the nodes nodes[node_starts[i] : node_starts[i + 1]], and its payload is
payloads[payload_starts[i] : payload_starts[i + 1]].
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from tidings.routing.protocol import messages as m

MOST_BYTES = 4 << 20
"""The most bytes that all columns of a part may take."""

Numbers = npt.NDArray[np.int64]


class Part(msgspec.Struct, frozen=True, eq=False):
    """Notifications, in the order in which the owner numbers them.

    The owner stores each (source, batch, part) once, and in order. The first batch of a source may
    have any number. In each batch, parts are numbered from 0, and the part with `last` ends the
    batch. Batch numbers have no gaps, so a batch without notifications is handed over as one empty
    part."""

    source: str
    batch: int
    part: int
    last: bool
    life: int
    version: int
    """The version at which the nodes were found."""
    node_starts: Numbers
    nodes: Numbers
    payload_starts: Numbers
    payloads: bytes

    def __len__(self) -> int:
        return len(self.node_starts) - 1

    def message(self) -> m.HandOver:
        """The part as a message."""
        return m.HandOver(
            self.source, self.batch, self.part, self.last, self.life, self.version,
            _pack(self.node_starts), _pack(self.nodes), _pack(self.payload_starts),
            self.payloads,
        )  # fmt: skip

    def __eq__(self, other: Any) -> bool:
        if not isinstance(other, Part):
            return NotImplemented
        mine, others = msgspec.structs.astuple(self), msgspec.structs.astuple(other)
        return all(np.array_equal(one, two) for one, two in zip(mine, others, strict=True))

    __hash__ = None  # type: ignore[assignment]


def _pack(numbers: Numbers) -> bytes:
    return np.asarray(numbers, "<i8").tobytes()
