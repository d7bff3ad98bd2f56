"""Find the neighbours of a new filter: the filters that cover it, and the filters that it covers.

    new filter ──questions──> corner and pieces ──box_index──> compiled filters
                                                ──sketches───> filters added since

    box_questions.py   questions to an index about a filter
    box_index.py       compiled filters, in rank space, with an index
    sketches.py        filters that are not compiled yet, as arrays that grow
    segments_of_nodes.py    compiles filters, alone or together with those of an earlier segment
    index_kernels.py, lookup_kernels.py, sketch_kernels.py    the hot loops

An index proves some coverings, and returns candidates for all others. The filters of these
candidates are then compared (tidings.filters.canonical.covers_among). This folder is for channel,
not for users. Start at box_questions.py.
"""

from tidings.matching.placing.box_index import BoxIndex, FoundSlots, IndexArrays
from tidings.matching.placing.box_questions import Question, ask, is_plain
from tidings.matching.placing.index_kernels import Corners
from tidings.matching.placing.segments_of_nodes import (
    merge_filters,
    save_segment,
    segment_at_places,
)
from tidings.matching.placing.sketches import Sketches

__all__ = [
    "BoxIndex",
    "Corners",
    "FoundSlots",
    "IndexArrays",
    "Question",
    "Sketches",
    "ask",
    "is_plain",
    "merge_filters",
    "save_segment",
    "segment_at_places",
]
