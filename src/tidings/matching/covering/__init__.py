""""""

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
from tidings.matching.covering.neighbours import MAYBE, YES, Neighbours

__all__ = [
    "MAYBE",
    "YES",
    "Block",
    "Blocks",
    "Finder",
    "GatheredHulls",
    "HullGathering",
    "Neighbours",
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
