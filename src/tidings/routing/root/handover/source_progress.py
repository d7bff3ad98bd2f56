"""Which parts each source has handed over. Parts arrive in order, and each part is stored once.

    batch 7: part 0, 1, 2 (last)     batch 8: part 0 ...        a source may begin with any batch

For each source, only its last part is remembered, because all parts before it are stored. No source
is ever forgotten, because a forgotten source could hand over all its parts again.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from tidings.model import TidingsError
from tidings.routing.root.records import Progress


class Activity(msgspec.Struct):
    """What a source has done since the start of the rendezvous point; this is not stored."""

    sender: str  # the neighbour that handed over the last part of the source
    at: float  # when that was
    taken: int = 0  # notifications that were accepted


class Sources:
    """The progress of all sources, including parts that are not on the disk yet."""

    def __init__(self, known: Mapping[str, Progress], most: int) -> None:
        self.known = dict(known)
        self._most = most
        self.activity: dict[str, Activity] = {}

    def find_progress(self, source: str, batch: int, part: int) -> Progress | None:
        """How much of a part is stored; None if the whole part is stored. Raise TidingsError
        if another part is expected."""
        known = self.known.get(source)
        if known is None and len(self.known) >= self._most:
            raise TidingsError(
                f"found {len(self.known):,} sources of tagged batches, expected fewer than "
                f"{self._most:,}, the limit `sources`"
            )
        if known is None or known.batch < 0:
            expected = batch, 0
        elif not known.whole:
            expected = known.batch, known.part
        else:
            expected = (known.batch + 1, 0) if known.last else (known.batch, known.part + 1)
        if (batch, part) == expected:
            if known is not None and not known.whole:
                return known
            return Progress(batch, part, 0, False, False, 0 if known is None else known.stamp)
        if known is not None and (batch, part) <= (known.batch, known.part):
            return None
        raise TidingsError(
            f"found part {part} of batch {batch} of {source!r}, expected part {expected[1]} of "
            f"batch {expected[0]}"
        )

    def advance(self, source: str, progress: Progress) -> None:
        self.known[source] = progress

    def note(self, source: str, sender: str, now: float, count: int) -> None:
        """Record that a source handed over `count` more notifications."""
        seen = self.activity.setdefault(source, Activity(sender, now))
        seen.sender, seen.at, seen.taken = sender, now, seen.taken + count
