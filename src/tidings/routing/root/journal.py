"""What a rendezvous point needs of its journal: what it writes, and what it starts with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

import msgspec

from tidings.routing.forwarding.label_graph import Label
from tidings.routing.protocol import messages as m
from tidings.routing.root.interests import Placed


class Journal(Protocol):
    """What a rendezvous point writes, in order. It can be lost until it is on the disk."""

    def add_node(self, node: int, interest: bytes, owner: str) -> None: ...
    def set_owners(self, node: int, owners: tuple[str, ...]) -> None:
        """These own a node from now on."""

    def drop_node(self, node: int) -> None: ...
    def append(self, record: Record) -> None: ...
    def find(
        self, ranges: Iterable[m.Range], most_bytes: int
    ) -> tuple[list[m.Notification], list[m.Range]]:
        """The notifications that are there, and the numbers of those that are not any more. Those
        beyond `most_bytes` of payload are in neither."""

    def prune(self, upto: int) -> None:
        """Notifications up to a serial are not needed any more."""

    def forget_publishers(self, names: Iterable[str]) -> None:
        """Their stamps are not needed any more."""


class Record(msgspec.Struct, frozen=True):
    """A notification as the journal has it."""

    serial: int
    publisher: str
    stamp: int
    marks: Sequence[m.Mark]
    matched: Label  # all nodes that match it
    payload: bytes

    def notification(self, epoch: int, marks: tuple[m.Mark, ...] | None = None) -> m.Notification:
        """With its own marks, or with other labels at them."""
        marks = tuple(self.marks) if marks is None else marks
        return m.Notification(epoch, self.serial, marks, self.payload, self.publisher, self.stamp)


class Memory(msgspec.Struct):
    """What the journal of a rendezvous point had when it was started. The last life is that of this
    start; after a loss that the journal noticed, it is the only one."""

    lineage: tuple[m.Life, ...]
    serial: int = 0
    placed: list[Placed] = []  # each after its parents
    counts: dict[int, int] = {}
    totals: dict[int, int] = {}
    latest: dict[int, int] = {}  # the serial of the last notification of a node
    publishers: dict[str, int] = {}  # the last stamp of each
    owners: dict[int, tuple[str, ...]] = {}  # of each node,
    sizes: dict[int, int] = {}  # and the bytes of its filter
    written: int = 0  # things that the journal was given since it was opened
