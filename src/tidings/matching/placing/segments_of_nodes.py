"""Segments in which a filter's slot is the place of its node, and the folder of such a segment.

New filters are merged with the filters of an earlier segment: tests are moved to the merged rank
spaces, and no filter is parsed again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from msgspec.structs import replace

from tidings.filters.canonical import Form
from tidings.matching.covering import GatheredHulls, segment_of_hulls
from tidings.matching.diagrams.segment_trees import AUTO
from tidings.matching.disk.diagram_folder import unpack_measured
from tidings.matching.matcher_state import SealedPart
from tidings.matching.segments.assembly import assemble, merge_segments
from tidings.matching.segments.segment import Segment
from tidings.matching.segments.segment_builder import build_segment

Array = npt.NDArray[Any]


def merge_filters(
    base: Segment | None, added: Iterable[tuple[int, Form]], place_of: Array, count: int
) -> Segment:
    """Merge filters into a segment. place_of[slot] is the place of the filter at an old or added
    slot, or -1 if the filter is gone; there are `count` places."""
    dead = (place_of < 0).astype(np.uint8)
    parts = [*([] if base is None else [base]), build_segment(added)]
    merged = merge_segments(parts, dead)
    merged.slots = place_of[merged.slots].astype(np.uint32)
    return _with_places(assemble(merged), count)


def segment_at_places(
    gathered: GatheredHulls, chosen: Array, places: Array, forms: Sequence[Form], count: int
) -> Segment:
    """The segment of the chosen forms, which are numbered in the order of gathering. places[i] is
    the place of chosen[i]."""
    found = segment_of_hulls(gathered, chosen, forms)
    arrays = found.arrays
    arrays = arrays._replace(box_slot=places[arrays.box_slot].astype(np.uint32))
    return _with_places(replace(found, arrays=arrays), count)


def _with_places(segment: Segment, count: int) -> Segment:
    many = np.bincount(segment.arrays.box_slot, minlength=count) > 1
    return replace(segment, slots=count, many=many.astype(np.uint8))


def save_segment(
    path: Path, segment: Segment, texts: pa.ChunkedArray, measured: bytes = b""
) -> None:
    """Write a matcher whose ids are places, with the diagrams of its wide filters; texts[i] is the
    filter at place i. `measured` contains the counts of tests that `Matcher.pack_measured`
    returned."""
    ids = pa.chunked_array([pa.array(np.arange(len(texts), dtype=np.int64))])
    sealed = SealedPart.of(segment, AUTO, measured=unpack_measured(measured))
    sealed.save(path, AUTO, ids, texts)
