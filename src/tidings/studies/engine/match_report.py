"""The results of measuring matching, as data."""

from __future__ import annotations

import msgspec

from tidings.studies.host.machine_info import MachineInfo


class Timing(msgspec.Struct, frozen=True):
    """The microseconds per event: the median, best and worst of the repeats."""

    median: float
    best: float
    worst: float


class Latency(msgspec.Struct, frozen=True):
    """Latencies of single events in microseconds: the percentiles, as medians over the repeats."""

    p50: float
    p99: float
    events: int


class Evaluations(msgspec.Struct, frozen=True):
    """The tests of all filters, and how many of them are evaluated for an event, as means over the
    events. shared_tests.py and matching/effort.py say what is counted."""

    events: int
    tests: int
    """The tests of all filters."""
    different_tests: int
    one_by_one: float
    """The tests that are evaluated if every filter is matched by itself."""
    shared: float
    """The tests that are evaluated if equal tests share their result."""
    coded: float
    """In the index: terms that are turned into codes."""
    candidates: float
    """In the index: boxes that are examined."""
    compared: float
    """In the index: codes that are compared with sets of the examined boxes."""
    compared_different: float
    asked: float
    """In the index: tests that remain to be evaluated after codes were compared."""
    evaluated: float
    """In the index: terms that are evaluated for these tests."""


class MatchRun(msgspec.Struct, frozen=True):
    """The measurements for one number of filters and threads.

    Adding the filters and matching single events use one thread; runs that differ only in threads
    share these figures.
    """

    workload: str
    filters: int
    events: int
    batch: int
    """Events per call and thread."""
    threads: int
    repeats: int
    seed: int
    build_seconds: float
    filters_per_second: float
    first_batch_seconds: float
    """The first batch, including the compilation of kernels."""
    index_bytes: int | None
    bytes_per_filter: float | None
    matches_per_event: float
    pairs: Timing
    """Matching a batch, with pairs of event and filter as the result."""
    lists: Timing
    """Matching a batch, with a list of ids per event as the result."""
    counts: Timing | None
    """Counting matches without writing them, if the engine supports it."""
    json_batches: Timing
    """Parsing JSON lines into record batches and matching them, with pairs as the result."""
    one_dict: Latency
    one_json: Latency
    checked_events: int
    """Events whose matches were checked against the reference semantics."""
    checked_evaluations: int
    tests: Evaluations | None = None
    """The tests that were evaluated; None if they were not counted."""


class GrowthExponent(msgspec.Struct, frozen=True):
    """The exponent e of time ~ filters**e over the sizes of one workload."""

    workload: str
    threads: int
    smallest: int
    largest: int
    pairs: float
    lists: float
    counts: float | None
    one_dict: float


class MatchReport(msgspec.Struct, frozen=True):
    """All runs, and how the time grows from the smallest to the largest number of filters."""

    machine: MachineInfo
    runs: list[MatchRun]
    growth: list[GrowthExponent]
