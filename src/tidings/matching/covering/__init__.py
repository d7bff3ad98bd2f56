"""Find which filters cover which, in bulk: the batch join with filters in place of events.

    forms ──hull_gathering──> hulls ──cover_join──> candidates ──by_boxes, undecided──> coverings
                                                                                       |
                                  edges of a content graph <──coverage: block by block─┘

A hull is the box around a filter. The hull of a covering filter is at least as wide as that of the
covered filter, so the join of hulls finds all candidates. The boxes of the candidates decide most
cases; in the other cases, the filters themselves are compared.

    coverage.py              the whole computation, in blocks    cover_folder.py  across processes
    hulls.py                 hulls as flat arrays                hull_segment.py  hulls to a segment
    compiled_neighbours.py   a new filter against compiled ones  *_kernels.py     the hot loops

This folder is for channel, graph, snapshots, spark and studies, not for users. Start at
coverage.py.
"""

from tidings.matching.covering.compiled_neighbours import (
    MAYBE,
    YES,
    CompiledBoxes,
    Neighbours,
    Spans,
)
from tidings.matching.covering.cover_folder import (
    open_finder,
    pairs_path,
    read_pairs,
    write_finder,
    write_pairs,
)
from tidings.matching.covering.coverage import Block, Blocks, Finder, cover, cover_hulls, in_threads
from tidings.matching.covering.hull_gathering import GatheredHulls, HullGathering
from tidings.matching.covering.hull_segment import segment_of_hulls
from tidings.matching.covering.hulls import bounds, ranges
from tidings.matching.covering.neighbour_kernels import Boxed

__all__ = [
    "MAYBE",
    "YES",
    "Block",
    "Blocks",
    "Boxed",
    "CompiledBoxes",
    "Finder",
    "GatheredHulls",
    "HullGathering",
    "Neighbours",
    "Spans",
    "bounds",
    "cover",
    "cover_hulls",
    "in_threads",
    "open_finder",
    "pairs_path",
    "ranges",
    "read_pairs",
    "segment_of_hulls",
    "write_finder",
    "write_pairs",
]
