"""Segments: many filters compiled into flat arrays, and how events are matched against them.

    box      [access test] [test] [test] ...    rest: extras, residuals
                  |
    batch    sorted by the codes of the access term: the events that pass are a slice
    event    two tests at once, in grids of binned codes (probe)

    segment.py            the arrays and their invariants    part.py         a segment at work
    segment_builder.py    filters to a segment               assembly.py     segments merged
    access.py             the choice of access tests         statistics.py   what events look like
    join_kernels.py       the batch join                     residuals.py    what no set can say
    probe.py, probe_kernels.py    single events
    tested.py             which attributes a segment reads, and with what it compares them

`Segment` and `Tested` are for snapshots and spark; the rest is used only inside `matching`. Start
at segment.py, then part.py.
"""

from tidings.matching.segments.segment import Segment
from tidings.matching.segments.tested import Tested

__all__ = [
    "Segment",
    "Tested",
]
