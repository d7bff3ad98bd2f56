"""Decides when a journal writes a checkpoint and which segments it drops, and computes the state
for a checkpoint.

    checkpoint ──walk──> start of the summary ──summary──> end of the log ──> the next checkpoint

The walk is empty, except for the first checkpoint after a start or after a failure. So the
checkpoint does not notice if data is damaged on the disk after the data was written, and does not
need that data. Readers of the log notice the damage.
"""

from __future__ import annotations

from collections.abc import Sequence

from tidings.store.groups import GroupLog, Position
from tidings.store.journal import checkpoint, entries as t
from tidings.store.journal.log_segments import Retention, Segments
from tidings.store.journal.state import Counting, JournalState
from tidings.store.journal.upkeep.summary import Summary

# bytes between checkpoints, or 4 times the size of the last checkpoint if that is larger
CHECKPOINT_BYTES = 64 << 20


class Upkeep:
    """The checkpoint of a journal, and a summary of the entries since then. Callers must hold the
    lock of the journal's files, except when they call `state_at`."""

    def __init__(
        self, log: GroupLog, segments: Segments, retention: Retention, since: Position, size: int
    ) -> None:
        self._log = log
        self._segments = segments
        self._retention = retention
        self.since = since
        """The position of the checkpoint."""
        self.size = size
        """The size of the checkpoint in bytes; 0 if there is none."""
        self.unneeded = 0
        """Nobody needs the notifications up to this serial."""
        self._summary = Summary(since)

    def begin_summary(self) -> None:
        """Begin a new summary at the end of the log."""
        self._summary = Summary(self._log.end)

    def note(self, things: Sequence[t.JournalEntry]) -> None:
        """Note the entries of the group that was written last."""
        if not self._summary.add(things):
            self.begin_summary()

    def take_summary(self) -> Summary:
        """A summary of all entries up to now. If no checkpoint is made from the summary, the next
        checkpoint reads these entries from the log."""
        taken = self._summary
        self.begin_summary()
        return taken

    def state_at(self, summary: Summary, end: Position) -> JournalState:
        """The state at the end of a summary. Other threads may write meanwhile. Raise OSError if
        data that must be read is damaged."""
        log = GroupLog(self._log.folder)
        state = checkpoint.read(log.folder, log.read_mark())
        walk_to(state, log, summary.start)
        summary.apply(state)
        state.at, state.log = end, self._log.id
        return state

    def keep(self, since: Position, size: int) -> None:
        """Note that a checkpoint was written."""
        self.since, self.size = since, size
        self._segments.grow_old()

    def since_checkpoint(self) -> int:
        """Bytes after the checkpoint, which a start would have to read."""
        current = self._segments.current
        before = self.since.offset if self.since.segment in current else 0
        return sum(one.size for one in current.values()) - before

    def droppable(self) -> list[int]:
        """Segments that can be dropped now. Segments after the checkpoint can be dropped only after
        a new checkpoint. With many nodes, a checkpoint is large, so it is not worthwhile to write
        one only to drop segments."""
        pays = 4 * self.size <= max(CHECKPOINT_BYTES, self.since_checkpoint())
        found = self._segments.droppable(self._retention, self.unneeded)
        return [first for first in found if pays or first < self.since.segment]

    def needs_checkpoint(self, gone: Sequence[int]) -> bool:
        """Whether a checkpoint is due, or needed before these segments are dropped."""
        is_long = self.since_checkpoint() > max(CHECKPOINT_BYTES, 4 * self.size)
        return is_long or bool(gone and gone[-1] >= self.since.segment)

    @property
    def is_due(self) -> bool:
        """Whether there is anything to do."""
        return self.needs_checkpoint(()) or bool(self.droppable())


def walk_to(state: JournalState, log: GroupLog, end: Position, *, is_told: bool = False) -> None:
    """Apply the groups of a log up to a position. Damage is an error, unless a break was announced
    to all subscribers (`is_told`)."""
    if state.at.number < end.number:
        walk, counting = log.walk(state.at, end), Counting(state)
        for group in walk:
            counting.apply_all(record for record in group.records if record is not None)
            state.at = group.end
            if state.at.number == end.number:
                break
        counting.finish()
        if walk.damages and not is_told:
            raise OSError(walk.damages[0])
        state.at = end
    state.log = log.id
