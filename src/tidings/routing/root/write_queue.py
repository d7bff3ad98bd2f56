"""What was given to the journal, and what waits until that is on the disk.

given      1  2  3  4  5  6         things, counted in the order in which they were given
on disk    ───────┤                 `take_stored(3)` gives all that waited for 1, 2 and 3
waiting    record 2, answer 3, record 5, acknowledgment 6
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from tidings.routing.forwarding.neighbours import Sent
from tidings.routing.protocol import messages as m
from tidings.routing.root.journal import Journal, Record


class WriteQueue:
    """Between a rendezvous point and its journal."""

    def __init__(self, journal: Journal, written: int) -> None:
        self.journal = journal
        self.written = written
        """Things that were given to the journal so far."""
        self.failed = ""
        """Why nothing can be written any more."""
        self.records: deque[Record] = deque()
        """Notifications that are not on the disk yet."""
        self.promised = 0
        """Entries of the answers that wait."""
        self.unsynced_bytes = 0
        """Bytes of the publications that are not on the disk yet."""
        self._waiting: deque[tuple[int, Record | Sent]] = deque()  # and for how many things
        self._sizes: deque[tuple[int, int]] = deque()  # written so far, bytes of a publication

    def __len__(self) -> int:
        return len(self._waiting)

    # -- what is written -----------------------------------------------------------------------

    def add_node(self, node: int, interest: bytes, owner: str) -> None:
        self.journal.add_node(node, interest, owner)
        self.written += 1

    def set_owners(self, node: int, owners: tuple[str, ...]) -> None:
        self.journal.set_owners(node, owners)
        self.written += 1

    def drop_node(self, node: int) -> None:
        self.journal.drop_node(node)
        self.written += 1

    def append(self, record: Record, size: int) -> None:
        """Write a publication of so many bytes."""
        self.journal.append(record)
        self.written += 1
        self._sizes.append((self.written, size))
        self.unsynced_bytes += size

    # -- what waits for it ---------------------------------------------------------------------

    def hold_record(self, record: Record) -> None:
        """Hold a notification, the last thing that was written, until it is on the disk."""
        self.records.append(record)
        self._waiting.append((self.written, record))

    def hold(self, sent: Sent) -> None:
        """Hold a message until all that was written by now is on the disk."""
        self._waiting.append((self.written, sent))
        if isinstance(sent[1], m.Answer):
            self.promised += len(sent[1].counts)

    def take_stored(self, count: int) -> Iterator[Record | Sent]:
        """Give out what waited for the first `count` things, in order."""
        waiting = self._waiting
        while waiting and waiting[0][0] <= count:
            _, what = waiting.popleft()
            if isinstance(what, Record):
                self.records.popleft()
            elif isinstance(what[1], m.Answer):
                self.promised -= len(what[1].counts)
            yield what
        while self._sizes and self._sizes[0][0] <= count:
            self.unsynced_bytes -= self._sizes.popleft()[1]

    def fail(self, reason: str) -> list[Record | Sent]:
        """Nothing can be written any more; what waited in vain."""
        self.failed = reason
        waited = [what for _, what in self._waiting]
        self._waiting.clear()
        self._sizes.clear()
        self.records.clear()
        self.promised = self.unsynced_bytes = 0
        return waited
