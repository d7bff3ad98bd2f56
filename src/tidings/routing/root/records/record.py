"""A notification as the journal stores it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tidings.routing.forwarding.label_graph import Label
from tidings.routing.protocol import messages as m


class Record(msgspec.Struct, frozen=True):
    """A notification as the journal stores it."""

    serial: int
    publisher: str
    stamp: int
    marks: Sequence[m.Mark]
    matched: Label  # all nodes that match the notification
    payload: bytes

    def matches(self, node: int) -> int:
        """1 if the notification matches a node, otherwise 0; see `Block.matches`."""
        return node in self.matched

    def notification(self, epoch: int, marks: tuple[m.Mark, ...] | None = None) -> m.Notification:
        """The notification to send. By default, it has the marks of the record; `marks` replaces
        them by the same marks with other labels."""
        marks = tuple(self.marks) if marks is None else marks
        return m.Notification(epoch, self.serial, marks, self.payload, self.publisher, self.stamp)
