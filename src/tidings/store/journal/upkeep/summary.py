"""A summary of the entries that were written after a position of the log.

    position ──entries──> end          a state at the position + summary = the state at the end

So a checkpoint need not read the entries since the previous one again. Notifications are only
counted (see counter_sums.py); all other entries are few, and are kept as they are. The order
between notifications and other entries matters in only two cases, which are handled when an entry
is added: a node that is added or removed starts with new counters, and the stamp of a source is
part of its progress.

If a summary can't continue, a new one begins at the end of the log, and the checkpoint reads the
log up to that position.
"""

from __future__ import annotations

from collections.abc import Iterable

from tidings.routing.root import Block, Progress, Record
from tidings.store.groups import Position
from tidings.store.journal import entries as t
from tidings.store.journal.rows import Rows
from tidings.store.journal.state import Counting, JournalState
from tidings.store.journal.upkeep.counter_sums import CounterSums

MOST_THINGS = 100_000  # the most entries that are kept unchanged; they take about 40 MB


class Summary:
    """The entries that were written after the position `start`."""

    def __init__(self, start: Position) -> None:
        self.start = start
        self._things: list[t.Small | Rows] = []
        self._many = 0  # the number of entries; each change to a subscription counts as one
        self._tally = CounterSums()
        self._serial = 0
        self._publishers: dict[str, int] = {}
        self._sources: dict[str, Progress] = {}

    def add(self, things: Iterable[t.JournalEntry]) -> bool:
        """Add entries in the order in which they were written. Returns False if the summary can't
        continue."""
        for thing in things:
            if isinstance(thing, Block):
                self._add_block(thing)
            elif isinstance(thing, Record):
                self._publishers[thing.publisher] = thing.stamp
                if thing.serial:  # a notification without a serial was refused
                    self._serial = thing.serial
                    self._tally.add(thing)
            elif isinstance(thing, t.Life | t.Repaired):
                return False  # the effect of such an entry depends on all entries before it
            else:
                self._add_thing(thing)
        return self._many <= MOST_THINGS

    def _add_block(self, block: Block) -> None:
        if len(block):
            self._publishers[block.source] = block.last_stamp
            self._serial = block.last_serial
            self._tally.add_block(block)
        if block.progress is not None:
            self._take(block.source, block.progress)

    def _take(self, source: str, progress: Progress) -> None:
        self._sources[source] = progress
        self._publishers.pop(source, None)

    def _add_thing(self, thing: t.Small | Rows) -> None:
        if isinstance(thing, t.Taken):
            self._take(thing.source, thing.progress)
            return
        self._things.append(thing)
        self._many += len(thing.rows) if isinstance(thing, Rows) else 1
        if isinstance(thing, Rows):
            for row in thing.rows:
                if row.ended:
                    self._tally.forget(row.ended)
        elif isinstance(thing, t.Added | t.Dropped):
            self._tally.forget(thing.node)
        elif isinstance(thing, t.Forgotten):
            for name in thing.publishers:
                self._publishers.pop(name, None)

    def apply(self, state: JournalState) -> None:
        """Turn the state at the start into the state at the end."""
        counting = Counting(state)
        for thing in self._things:
            counting.apply(thing)
        for source, progress in self._sources.items():
            counting.apply(t.Taken(source, progress))
        self._tally.apply(state)
        state.publishers.update(self._publishers)
        state.serial = self._serial or state.serial
