"""Applies the groups of a log to a state, and finds out which versions can't be read.

    version 4 │ damage │ group: versions 9, 10     versions 5 to 8 are lost
    version 10, then the end; the mark says 12     versions 11 and 12 are lost

A version can also be the number of a node, and a number that was possibly used must never be used
again. So the log continues after the highest version that was, or possibly was, acknowledged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tidings.store.groups import EndMark, Group, Walk
from tidings.store.journal import entries as t
from tidings.store.journal.rows import Rows
from tidings.store.journal.state import Counting, JournalState

UNTOLD = 10_000  # versions to skip if the last acknowledged version is unknown


class LossReplay:
    """Applies the groups of a walk to a state, and notes the versions that are lost."""

    def __init__(self, state: JournalState, *, base_is_suspect: bool = False) -> None:
        """`base_is_suspect` is set if the state before the walk is, or may be, missing."""
        self.state = state
        self.lost: list[tuple[int, int]] = []
        self.unread = 0
        """How many notifications in the middle of the log can't be read. The totals of nodes do not
        include these notifications."""
        self._is_suspect = self._lacks_base = base_is_suspect

    def apply(self, walk: Walk, told: Callable[[Group], None] = lambda _: None) -> None:
        """Apply all groups, and pass each of them to `told`."""
        counting, damages = Counting(self.state), 0
        for group in walk:
            good = [record for record in group.records if record is not None]
            is_damaged = len(walk.damages) > damages
            if self._is_suspect or is_damaged:
                damages = len(walk.damages)
                counting.finish()
                # before the next intact group with a version, more versions could be missing
                self._is_suspect = not self._note_gaps(good, counting) or is_damaged
            else:
                counting.apply_all(good)
            told(group)
            self.state.at = group.end
        counting.finish()

    def _note_gaps(self, records: Iterable[bytes], counting: Counting) -> bool:
        """Apply records, and note the versions that are missing before each; return whether any
        record has a version."""
        found = False
        for record in records:
            if record[:1] != t.NOTIFICATION:
                thing = t.decode_small(record)
                if isinstance(thing, Rows):
                    before: int | None = thing.first - 1
                elif isinstance(thing, t.At):
                    before = thing.version
                elif isinstance(thing, t.Adopted):
                    before = thing.first - 1
                else:
                    version = t.version_of(thing)
                    before = version - 1 if version else None
                if before is not None:
                    found = True
                    self._lose(before)
            serial = self.state.serial
            counting.apply_all([record])
            if record[:1] == t.NOTIFICATION and (serial or not self._lacks_base):
                self.unread += max(0, self.state.serial - serial - 1)
        return found

    def _lose(self, upto: int) -> None:
        history = self.state.history
        if upto > history.version:
            self.lost.append((history.version + 1, upto))
            history.version = upto
            self.state.last_node = max(self.state.last_node, upto)

    def finish(self, mark: EndMark | None, *, is_told: bool = True) -> t.Repaired:
        """The entry with which a log continues after a loss. `mark` is the end mark of the log;
        `is_told` is false if versions after that of the mark may have been acknowledged."""
        if mark is not None:
            self._lose(version_in(mark))
        state = self.state
        version = max(state.version, state.last_node, state.history.base)
        version += 1 if mark is not None and is_told else UNTOLD + 1
        return t.Repaired(version, tuple(self.lost))


def version_in(mark: EndMark) -> int:
    """The version in an end mark; 0 in marks of older releases."""
    return mark.value >> 1


def value_of(version: int, *, has_checkpoint: bool) -> int:
    """The value of an end mark, from which `version_in` reads the version."""
    return version << 1 | has_checkpoint
