"""Named workloads: filters and events for benchmarks, reproducible by seed.

    seed ──draws──> conjunctions ──> filters, as SQL, JSON or lists
              `───> events ──answers──> the correct matches ──checking──> those of an engine

    workloads.py       the recipes: mixed, equality, ranges, prefix, flights
    conjunctions.py    filters as columns of tests, written as SQL, JSON or lists
    draws.py           reproducible random draws, block by block
    answers.py         the correct matches, computed from the tests alone
    checking.py        compares the matches of an engine with the correct ones
    json_lines.py      parses JSON lines into record batches
    flights.py, many_flights.py    real flights, and years of them as Parquet
    wide_filters.py    filters for `tidings bench bdd`
    scenarios.py       three services for the network: baseball, traffic, attributes

Published figures use `mixed` and `equality`; do not change them. This folder is for the rest of
studies and for cli. Start at workloads.py.
"""

from tidings.studies.workloads.conjunctions import event_lines
from tidings.studies.workloads.many_flights import write_flights

__all__ = [
    "event_lines",
    "write_flights",
]
