"""Statistics of events: how often each code of each term occurred in a sample of the events.

A sample of each batch is counted. The counts decide which test of a box becomes its access test,
and whether an earlier choice is still good enough.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from tidings.matching.segments.access import shares
from tidings.matching.segments.assembly import disassemble
from tidings.matching.segments.join_kernels import count_codes
from tidings.matching.segments.part import Codes, Part

Array = npt.NDArray[Any]
SAMPLE = 1024  # of the events of a batch, about this many are counted
FIRST_LOOK = 4096  # the choice is reviewed after this many events, after twice as many, and so on
DRIFT = 1.5  # a choice is kept unless it causes over this many times the work of the best choice
FADE = 1 << 20  # counts are halved after this many events, so that older events count less and less


class Statistics:
    """For each term of one part, how many events had each code."""

    def __init__(
        self, part: Part, counts: Mapping[str, Array] | None = None, seen: int = 0
    ) -> None:
        self._terms = [
            (at, term.text, len(term.ranks))
            for at, term in enumerate(part.segment.terms, 1)
            if not term.elements
        ]
        self._columns = np.array([at for at, _, _ in self._terms], np.int64)
        ends = np.cumsum([0, *(size for _, _, size in self._terms)])
        self._starts = ends[:-1]
        self._flat = np.zeros(ends[-1], np.float64)  # the counts of all terms, concatenated
        self.counts = {
            text: self._flat[start : start + size]
            for (_, text, size), start in zip(self._terms, self._starts, strict=True)
        }
        for text in self.counts.keys() & (counts or {}).keys():
            self.counts[text][:] = (counts or {})[text]
        self.seen = seen
        self._next_look = max(FIRST_LOOK, 2 * seen)

    def count(self, codes: Codes) -> None:
        """Count a sample of the events of a batch."""
        step = max(1, codes.exact.shape[1] // SAMPLE)
        count_codes(codes.exact, self._columns, self._starts, step, self._flat)
        self._note_events(min(codes.exact.shape[1], SAMPLE))

    def count_one(self, codes: Array) -> None:
        """Include a single event, given by its codes, in the counts."""
        self._flat[self._starts + codes[self._columns]] += 1
        self._note_events(1)

    def _note_events(self, events: int) -> None:
        self.seen += events
        if self.seen >= FADE:
            self.seen //= 2
            self._next_look = self.seen + FADE // 4
            self._flat /= 2

    def due(self) -> bool:
        """Is it time to review the choice of access tests? True once per interval."""
        if self.seen < self._next_look:
            return False
        self._next_look = 2 * self.seen
        return True


def move_counts(counts: Array, place: Array, size: int) -> Array:
    """Translate counts to a rank space with `size` codes, in which the old cuts have the positions
    `place`. If an old code is split into several codes, they share its count equally."""
    first = np.append(0, place + 1)
    sizes = np.append(place + 1, size) - first
    return np.repeat(counts / sizes, sizes)


def excess_work(part: Part, counts: dict[str, Array]) -> float:
    """How many candidates pass the current access tests (an estimate), divided by how many would
    pass the best ones."""
    source = disassemble(part.segment)
    share = shares(source.tests, source.terms, counts)
    boxes = len(source.slots)
    best = np.full(boxes, 1.0, np.float64)
    np.minimum.at(best, source.tests.box, share)
    arrays = part.segment.arrays
    columns = np.repeat(arrays.group_column, arrays.group_end - arrays.group_start)
    now = 0.0
    for at, term in enumerate(part.segment.terms, 1):
        rows = columns == at
        if term.elements or not rows.any():
            continue
        weight = counts[term.text] + 1.0 / len(term.ranks)
        total = np.concatenate([[0.0], np.cumsum(weight)])
        low, high = (
            arrays.entry_low[rows].astype(np.int64),
            arrays.entry_high[rows].astype(np.int64),
        )
        now += float(((total[high + 1] - total[low]) / total[-1]).sum())
    least = float(best[np.unique(source.tests.box)].sum())
    return now / least if least > 0 else 1.0
