"""The acknowledged stamps of a publisher, as runs with their serials.

    life A   stamps 1-40   up to serial 95          serials rise with stamps, so the stamp that is
    life A   stamps 41-43  up to serial 120         k before the last of a run has a serial that is
    life B   stamps 44-90  up to serial 300         at least k lower

Stamps that were refused have no serials. Refused stamps lie between runs. A run that was merged
from two runs records how many of its stamps may have no serial.

If a lineage lacks a part of a run, all stamps whose serials may be lost are reported. The report
may include stamps that are not lost, but it never omits a lost stamp.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from tidings.routing.protocol.lineage import Lineage, StampRange

MOST_RUNS = 1024  # if there are more runs than this, adjacent runs of one life are merged
MOST_LIVES_KNOWN = 256  # runs of older lives are dropped, because no lineage contains these lives


class Run(msgspec.Struct):
    life: int
    first: int
    last: int
    serial: int  # an upper bound for the serial of the last stamp
    gaps: int = 0  # an upper bound for the number of stamps without a serial


class AcknowledgedRuns:
    """The runs of one publisher, in the order of their stamps."""

    def __init__(self) -> None:
        self._runs: list[Run] = []

    def __bool__(self) -> bool:
        return bool(self._runs)

    def add(self, life: int, first: int, last: int, serial: int) -> None:
        """Add stamps that were acknowledged in one life, with serials up to `serial`."""
        before = self._runs[-1] if self._runs else None
        if (
            before is not None
            and before.life == life
            and before.last + 1 == first
            and serial - before.serial == last - before.last  # no gap in the serials
        ):
            before.last, before.serial = last, serial
            return
        self._runs.append(Run(life, first, last, serial))
        if len(self._runs) > MOST_RUNS:
            self._shrink()

    def take_lost(self, lineage: Lineage) -> tuple[StampRange, ...]:
        """Remove the stamps that a lineage does not contain, and return them."""
        lost: list[StampRange] = []
        kept: list[Run] = []
        for run in self._runs:
            end = lineage.end(run.life)
            if run.serial < end:
                kept.append(run)
                continue
            behind = run.serial - end + run.gaps
            first = max(run.first, run.last - behind) if end else run.first
            lost.append(StampRange(first, run.last))
            if run.first < first:
                kept.append(Run(run.life, run.first, first - 1, end - 1, run.gaps))
        self._runs = kept
        return merge_spans(lost)

    def take_from(self, stamp: int) -> tuple[StampRange, ...]:
        """Remove a stamp and all stamps after it, and return them."""
        lost = [
            StampRange(max(run.first, stamp), run.last) for run in self._runs if run.last >= stamp
        ]
        kept = [run for run in self._runs if run.first < stamp]
        for run in kept:
            if run.last >= stamp:  # the serial of the run is still an upper bound
                run.last = stamp - 1
        self._runs = kept
        return merge_spans(lost)

    def _shrink(self) -> None:
        """Merge adjacent runs in pairs, except the latest runs, because only those are likely to be
        lost."""
        half = len(self._runs) // 4 * 2
        kept: list[Run] = []
        for one, other in zip(self._runs[:half:2], self._runs[1:half:2], strict=True):
            if one.life == other.life:
                gaps = one.gaps + other.first - one.last - 1 + other.gaps
                kept.append(Run(one.life, one.first, other.last, other.serial, gaps))
            else:
                kept += [one, other]
        self._runs[:half] = kept
        lives = list(dict.fromkeys(run.life for run in self._runs))[-MOST_LIVES_KNOWN:]
        self._runs = [run for run in self._runs if run.life in lives]


def merge_spans(spans: Iterable[StampRange]) -> tuple[StampRange, ...]:
    """Merge spans that overlap or touch; return the result in order."""
    found: list[StampRange] = []
    for one in sorted(spans):
        if found and one.first <= found[-1].last + 1:
            found[-1] = StampRange(found[-1].first, max(found[-1].last, one.last))
        else:
            found.append(one)
    return tuple(found)
