"""The interface of a rendezvous point's journal: the writes, and the state at the start."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import msgspec

from tidings.routing.protocol import messages as m
from tidings.routing.root.cursors import Confirmation, Cursor
from tidings.routing.root.interests import Placed
from tidings.routing.root.node_history import History, RemovedNode
from tidings.routing.root.records import Block, Progress, Record


class Journal(Protocol):
    """The writes of a rendezvous point, in order. A write can be lost until it is on the disk."""

    def add_node(self, node: int, interest: bytes, owner: str, key: bytes) -> None:
        """Add a node; `key` is the identity of its interest."""

    def set_owners(self, node: int, owners: tuple[str, ...]) -> None:
        """Set the owners of a node."""

    def drop_node(self, node: int, gone: RemovedNode) -> None: ...
    def append(self, record: Record) -> None: ...
    def append_block(self, block: Block) -> None:
        """Store all notifications of a block and the progress of its source, or nothing."""

    def set_rows(self, first: int, rows: Sequence[Any]) -> None:
        """Store changes to named subscriptions without cursors. The versions of the changes are
        consecutive, starting at `first`."""

    def set_cursor(self, key: str, cursor: Cursor | None) -> None:
        """Store the cursor of a named subscription; None drops it."""

    def confirm(self, key: str, one: Confirmation) -> None:
        """Move a cursor forward; see `Cursor.confirm`."""

    def find(
        self, ranges: Iterable[m.Range], most_bytes: int
    ) -> tuple[list[m.Notification], list[m.Range]]:
        """The notifications that the journal still has, and the numbers that it no longer has.
        Notifications beyond `most_bytes` of payload are left out of both lists."""

    def prune(self, upto: int) -> None:
        """Record that notifications up to a serial are no longer needed."""

    def forget_publishers(self, names: Iterable[str]) -> None:
        """Record that the stamps of these publishers are no longer needed."""


class Memory(msgspec.Struct):
    """The contents of the journal when the rendezvous point starts. The last life of the lineage
    begins with this start. If the journal noticed a loss, the lineage has only this life."""

    lineage: tuple[m.Life, ...]
    serial: int = 0
    placed: Sequence[Placed] = ()  # in an order in which each node comes after its parents
    counts: dict[int, int] = {}
    totals: dict[int, int] = {}
    latest: dict[int, int] = {}  # the serial of the last notification of a node
    publishers: dict[str, int] = {}  # the last stamp of each publisher
    owners: dict[int, tuple[str, ...]] = {}  # of each node
    sizes: dict[int, int] = {}  # the size of each node's filter, as `work_of` measures it
    history: History = msgspec.field(default_factory=History)
    sources: dict[str, Progress] = {}  # how far each source has handed over
    cursors: dict[str, Cursor] = {}  # of named subscriptions
    term: int = 0  # the highest term that a cursor ever had; dropped cursors count too
    written: int = 0  # writes since the journal was opened
    held: frozenset[int] = frozenset()  # nodes of named subscriptions without cursors
