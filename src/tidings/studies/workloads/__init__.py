""""""

from tidings.studies.workloads.conjunctions import event_lines
from tidings.studies.workloads.many_flights import write_flights

__all__ = [
    "event_lines",
    "write_flights",
]
