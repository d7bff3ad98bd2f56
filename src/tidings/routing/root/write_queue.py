"""Holds messages and notifications until the writes that they depend on are on the disk.

    writes     1  2  3  4  5  6       numbered in the order in which the journal got them
    on disk    ───────┤               `take_stored(3)` returns what waited for 1, 2 and 3
    waiting    record 2, answer 3, record 5, acknowledgment 6

After a failed write, `fail` returns everything that still waits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from tidings.routing.forwarding.neighbours import Sent
from tidings.routing.protocol import messages as m
from tidings.routing.root.cursors import Confirmation, Cursor
from tidings.routing.root.journal import Journal
from tidings.routing.root.node_history import RemovedNode
from tidings.routing.root.records import Block, Record

Waiting = Record | Block | Sent


class WriteQueue:
    """The queue between a rendezvous point and its journal."""

    def __init__(self, journal: Journal, written: int) -> None:
        self.journal = journal
        self.written = written
        """How many writes were passed to the journal so far."""
        self.failed = ""
        """Why nothing can be written any more; empty while writing works."""
        self.records: deque[Record | Block] = deque()
        """Notifications that are not on the disk yet."""
        self.promised = 0
        """How many entries the waiting answers have."""
        self.unsynced_bytes = 0
        """Bytes of the publications that are not on the disk yet."""
        # each item with the write that it waits for
        self._waiting: deque[tuple[int, Waiting]] = deque()
        # the waiting writes, each with the bytes of its publication
        self._sizes: deque[tuple[int, int]] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    # -- writing -------------------------------------------------------------------------------

    def add_node(self, node: int, interest: bytes, owner: str, key: bytes) -> None:
        self.journal.add_node(node, interest, owner, key)
        self.written += 1

    def set_owners(self, node: int, owners: tuple[str, ...]) -> None:
        self.journal.set_owners(node, owners)
        self.written += 1

    def drop_node(self, node: int, gone: RemovedNode) -> None:
        self.journal.drop_node(node, gone)
        self.written += 1

    def set_cursor(self, key: str, cursor: Cursor | None) -> None:
        self.journal.set_cursor(key, cursor)
        self.written += 1

    def set_rows(self, first: int, rows: Sequence[Any]) -> None:
        self.journal.set_rows(first, rows)
        self.written += 1

    def confirm(self, key: str, one: Confirmation) -> None:
        self.journal.confirm(key, one)
        self.written += 1

    def append(self, record: Record, size: int) -> None:
        """Write a publication of `size` bytes."""
        self.journal.append(record)
        self.written += 1
        self._sizes.append((self.written, size))
        self.unsynced_bytes += size

    def append_block(self, block: Block) -> None:
        """Write the notifications of a block, and hold them until they are on the disk."""
        self.journal.append_block(block)
        self.written += 1
        self._sizes.append((self.written, block.size))
        self.unsynced_bytes += block.size
        self.hold_record(block)

    # -- waiting for the disk ------------------------------------------------------------------

    def hold_record(self, record: Record | Block) -> None:
        """Hold the notifications of the last write until they are on the disk."""
        self.records.append(record)
        self._waiting.append((self.written, record))

    def hold(self, sent: Sent) -> None:
        """Hold a message until all writes so far are on the disk."""
        self._waiting.append((self.written, sent))
        if isinstance(sent[1], m.Answer):
            self.promised += len(sent[1].counts)

    def next_stop(self, count: int) -> int:
        """How many of the first `count` writes to announce at once: those up to the first block,
        which is included; blocks have many notifications."""
        for number, what in self._waiting:
            if number >= count:
                break
            if isinstance(what, Block):
                return number
        return count

    def take_stored(self, count: int) -> Iterator[Waiting]:
        """Remove and yield, in order, everything that waited for the first `count` writes."""
        waiting = self._waiting
        while waiting and waiting[0][0] <= count:
            _, what = waiting.popleft()
            if isinstance(what, Record | Block):
                self.records.popleft()
            elif isinstance(what[1], m.Answer):
                self.promised -= len(what[1].counts)
            yield what
        while self._sizes and self._sizes[0][0] <= count:
            self.unsynced_bytes -= self._sizes.popleft()[1]

    def fail(self, reason: str) -> list[Waiting]:
        """Stop, because nothing can be written any more; return everything that was waiting."""
        self.failed = reason
        waited = [what for _, what in self._waiting]
        self._waiting.clear()
        self._sizes.clear()
        self.records.clear()
        self.promised = self.unsynced_bytes = 0
        return waited
