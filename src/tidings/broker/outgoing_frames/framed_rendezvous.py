"""The state machine of a rendezvous point that sends notifications as frames."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tidings.broker.outgoing_frames.block_frames import FrameRun, encode_block
from tidings.routing.forwarding import MOST_LISTED, Cache, Label, NodeCache
from tidings.routing.protocol import Limits, Times, frames
from tidings.routing.root import (
    Block,
    Definition,
    Interests,
    Journal,
    Memory,
    Record,
    Relating,
    Rendezvous,
)

MOST_SINGLE = 1_000_000  # the most labels in the cache
MOST_LABELS = 8 << 20  # bytes; if labels take more, each label has only the node of its mark


class FramedRendezvous(Rendezvous):
    """A rendezvous point that encodes each notification as a frame, once for all neighbours, and
    collects the frames in `released`."""

    def __init__(
        self,
        name: str,
        interests: Interests,
        journal: Journal,
        memory: Memory,
        times: Times | None,
        cache: Cache,
        limits: Limits,
        definition: Definition,
        relating: Relating | None = None,
        *,
        keeps_order: bool = True,
        nodes_for_types: int = 0,
    ) -> None:
        super().__init__(
            name, interests, journal, memory, times, cache, limits, definition, relating,
            keeps_order=keeps_order, nodes_for_types=nodes_for_types,
        )  # fmt: skip
        self.released: list[bytes | FrameRun] = []
        # node -> its initial label, encoded
        self._labels: NodeCache[bytes] = self.caches.add(NodeCache())
        self._alone: dict[int, bytes] = {}  # labels of one node, for notifications with many marks

    def release(self, record: Record, nodes: Label) -> None:
        known: dict[int, bytes] = self._labels if len(nodes) <= MOST_LISTED else self._alone
        labels = b"".join(self._labels_of(nodes, known))
        if len(labels) > MOST_LABELS:
            labels = frames.encode_labels([(node,) for node in nodes])
        front = record.notification(self.epoch, ())
        self.released.append(frames.encode_marked(front, record.marks, labels))

    def release_block(self, block: Block) -> None:
        """Encode a block of notifications together, or one by one if any has many marks."""
        widest = int(np.diff(block.marks.starts).max(initial=0))
        if widest > MOST_LISTED:
            super().release_block(block)
        elif len(block.marks.nodes):
            labels = self._labels_of(block.marks.distinct.tolist(), self._labels)
            self.released.append(encode_block(block, self.epoch, labels))

    def _labels_of(self, nodes: Sequence[int], known: dict[int, bytes]) -> list[bytes]:
        """The encoded initial labels of nodes."""
        try:
            return [*map(known.__getitem__, nodes)]
        except KeyError:
            if len(known) > MOST_SINGLE:
                known.clear()
            for node in nodes:
                if node not in known:
                    label = self.first_label(node) if known is self._labels else (node,)
                    known[node] = frames.encode_labels([label])
            return [*map(known.__getitem__, nodes)]
