"""Named workloads: filters and events to measure with, the same for the same seed.

    workloads.py       the recipes: mixed, equality, ranges, prefix, flights
    conjunctions.py    filters as columns of tests, written as SQL, JSON or lists
    draws.py           random draws that can be repeated, block by block
    answers.py         the right answers, worked out from the tests alone
    checking.py        what an engine found, held against them
    json_lines.py      events as JSON lines to record batches
    flights.py, many_flights.py    real flights, and years of them as Parquet
    scenarios.py       three services for the network: baseball, traffic, attributes

`mixed` and `equality` are the ones that figures are quoted for: do not change them. For the rest of
studies and for cli. Start at workloads.py.
"""

from tidings.studies.workloads.conjunctions import event_lines
from tidings.studies.workloads.many_flights import write_flights

__all__ = [
    "event_lines",
    "write_flights",
]
