"""Segments: many filters compiled into flat arrays, and the search for those that match events.

    box      [access test] [test] [test] ...    rest: extras, residuals
                  |
    batch    sorted by the codes of the access term: the events that pass are a slice
    event    looked up by two tests at once, in grids of binned codes (probe)

    segment.py            the arrays and their invariants    part.py         a segment in use
    segment_builder.py    filters to a segment               assembly.py     merging segments
    access.py             the choice of access tests         statistics.py   statistics of events
    join_kernels.py       the batch join                     residuals.py    evaluating residuals
    probe.py, probe_kernels.py    single events
    tested_attributes.py   the attributes that a segment reads, and kinds of values compared
    misfits.py            which filters don't fit columns of given types

`Segment` and `Tested` are for snapshots and spark; all other names are used only inside `matching`.
Start at segment.py, then part.py.
"""

from tidings.matching.segments.segment import Segment
from tidings.matching.segments.tested_attributes import Tested

__all__ = [
    "Segment",
    "Tested",
]
