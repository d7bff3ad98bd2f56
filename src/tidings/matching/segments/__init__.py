""""""

from tidings.matching.segments.segment import Segment
from tidings.matching.segments.tested import Tested

__all__ = [
    "Segment",
    "Tested",
]
