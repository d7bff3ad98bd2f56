"""The state of a matcher: its parts, its write buffers, and the register of ids.

A state is replaced, never changed. Only the last write buffer of a state grows, under the matcher's
lock.
"""

from __future__ import annotations

import pathlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from tidings.matching.diagrams.diagrams import Diagrams
from tidings.matching.diagrams.measured_tests import Measured, add_measured
from tidings.matching.diagrams.segment_trees import choose_trees
from tidings.matching.disk import matcher_folder
from tidings.matching.disk.diagram_folder import SavedDiagrams
from tidings.matching.register import Register
from tidings.matching.segments.assembly import DisassembledSegment, assemble
from tidings.matching.segments.part import Part
from tidings.matching.segments.probe_kernels import Probe
from tidings.matching.segments.segment import Segment
from tidings.matching.segments.statistics import DRIFT, Statistics, excess_work, move_counts
from tidings.matching.write_buffer import WriteBuffer
from tidings.model import Event, Path

Array = npt.NDArray[Any]


class SealedPart(msgspec.Struct, frozen=True):
    """A part, with the statistics of the events that were matched against it, and with diagrams for
    the filters that the part itself does not search."""

    part: Part
    statistics: Statistics
    diagrams: Diagrams | None = None

    @classmethod
    def of(
        cls,
        segment: Segment,
        engine: str,
        *,
        counts: Mapping[str, Array] | None = None,
        seen: int = 0,
        ready: Probe | None = None,
        measured: Measured | None = None,
        diagrams: Diagrams | None = None,
    ) -> SealedPart:
        """Build a part, and the diagrams that the engine asks for, unless they are given. `counts`
        and `seen` are the statistics up to now, and `measured` has the counts of the tests in
        diagrams. `ready` is the index of all filters except those that are evaluated as
        diagrams."""
        skipped = None
        if diagrams is None:
            chosen = choose_trees(segment, engine, counts)
            if chosen.trees:
                diagrams, ready = Diagrams.build(chosen.trees, chosen.terms, measured), None
        if diagrams is not None:
            skipped = np.flatnonzero(np.isin(segment.arrays.box_slot, diagrams.slots))
        part = Part(segment, counts, ready, skipped)
        return cls(part, Statistics(part, counts, seen), diagrams)

    @property
    def is_linked(self) -> bool:
        """Whether the implications of the diagrams were found."""
        return self.diagrams is None or self.diagrams.is_linked

    def decide(self, event: Event) -> Iterator[tuple[int, bool]]:
        """For each filter that is evaluated as a diagram, its slot and its result, as soon as the
        result is known."""
        return iter(()) if self.diagrams is None else self.diagrams.decide(event)

    @property
    def diagram_count(self) -> int:
        """The number of filters that are evaluated as diagrams."""
        return 0 if self.diagrams is None else len(self.diagrams)

    @property
    def nbytes(self) -> int:
        return self.part.nbytes + (0 if self.diagrams is None else self.diagrams.nbytes)

    @property
    def has_drifted(self) -> bool:
        """Would other access tests give far fewer candidates?"""
        seen = self.statistics.seen
        return seen > 0 and excess_work(self.part, self.statistics.counts) > DRIFT

    def save(self, path: pathlib.Path, engine: str, ids: Any, texts: Any) -> None:
        """Find the implications, and write the filters and their diagrams to a directory."""
        saved = None
        if self.diagrams is not None:
            self.diagrams.link()
            saved = SavedDiagrams(self.diagrams.compiled, engine, self.diagrams.test_counts())
        matcher_folder.write(path, self.part.segment, self.part.index, ids, texts, saved)

    def renumber(self, number: Array) -> SealedPart:
        """The same part with new slots; needed if a part was sealed while the register was
        compacted."""
        old = self.part.segment
        slots = number[old.arrays.box_slot].astype(np.uint32)
        count = int(slots.max()) + 1 if len(slots) else 0
        many = (np.bincount(slots, minlength=count) > 1).astype(np.uint8)
        arrays = old.arrays._replace(box_slot=slots)
        segment = Segment(old.terms, arrays, old.rest, old.opaque, count, many)
        diagrams = None if self.diagrams is None else self.diagrams.renumber(number)
        return SealedPart(self.part.with_segment(segment), self.statistics, diagrams)


class MatcherState(msgspec.Struct, frozen=True):
    """Everything that a reader of the matcher needs."""

    parts: tuple[SealedPart, ...]
    fresh: tuple[WriteBuffer, ...]  # the last is being filled, those before it are being sealed
    register: Register

    @property
    def fresh_count(self) -> int:
        return sum(len(one) for one in self.fresh)

    @property
    def null_paths(self) -> frozenset[Path]:
        """The attributes for which some filter of a part distinguishes null from absent."""
        return frozenset().union(*(sealed.part.null_paths for sealed in self.parts))

    def flag_multi_box(self, slots: int) -> Array:
        """uint8 per slot: 1 for a filter with several boxes, which may be found more than once."""
        out = np.zeros(slots, np.uint8)
        for sealed in self.parts:
            out[: sealed.part.segment.slots] |= sealed.part.segment.many
        return out


def measure_tests(parts: Iterable[SealedPart]) -> Measured:
    """For each test of the diagrams, how many events were seen and how many passed."""
    return add_measured(one.diagrams.read_measured() for one in parts if one.diagrams is not None)


def seal_tests(
    source: DisassembledSegment, parts: tuple[SealedPart, ...], engine: str
) -> SealedPart:
    """Build a part from these tests; the statistics of the old parts determine its access tests,
    and the order of tests in its diagrams."""
    sizes = {term.text: len(term.ranks) for term in source.terms if not term.elements}
    counts: dict[str, Array] = {}
    # `moves` may have one item more than `parts`, for a segment that was never a part and has no
    # statistics
    for sealed, moves in zip(parts, source.moves, strict=False):
        for at, term in enumerate(sealed.part.segment.terms, 1):
            if not term.elements and at in moves:
                text = term.text
                seen = move_counts(sealed.statistics.counts[text], moves[at], sizes[text])
                counts[text] = counts[text] + seen if text in counts else seen
    seen_events = sum(sealed.statistics.seen for sealed in parts)
    found = SealedPart.of(
        assemble(source, counts),
        engine,
        counts=counts,
        seen=seen_events,
        measured=measure_tests(parts),
    )
    if any(sealed.part.is_probed for sealed in parts):
        found.part.prepare()
    return found
