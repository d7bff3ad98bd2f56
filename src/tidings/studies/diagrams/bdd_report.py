"""The results of `tidings bench bdd`, as data."""

from __future__ import annotations

import msgspec

from tidings.studies.bars import Bar
from tidings.studies.diagrams.found_coverings import Coverings
from tidings.studies.diagrams.small_domains import SmallDomain
from tidings.studies.host.machine_info import MachineInfo


class DiagramWay(msgspec.Struct, frozen=True):
    """One way to evaluate the diagrams: counts and microseconds per event."""

    name: str
    micros: float
    tests: float
    node_steps: float
    inferred: float
    """Steps that followed from implications."""
    touched: float
    """Filters that were decided, in whole or in part."""
    counted: float
    """Parts that were decided before the result of the whole filter was known."""


class DiagramRun(msgspec.Struct, frozen=True):
    """One workload."""

    workload: str
    filters: int
    wide: int
    matches: float
    parse_seconds: float
    build_seconds: float
    link_seconds: float
    units: int
    most_nodes: int
    """The nodes of the largest diagram; the budget is 256."""
    left_out: int
    """Filters that exceed a budget of the planner, and stay trees of sets."""
    split: int
    """Filters that are split into parts, most of them because their parts also occur in other
    filters."""
    too_large: int
    """Filters that are split because a diagram of them would have more than 256 nodes."""
    groups: int
    edges: int
    bytes: int
    bytes_per_edge: float
    ways: list[DiagramWay]
    trees_micros: float
    """The time of the matcher without diagrams, for batches."""
    matcher_micros: float
    """The time of the matcher with diagrams, for batches."""
    speedup: float
    step_share: float
    """The number of node steps with implications, divided by the number without implications. In
    both cases, equal parts of filters are merged."""
    apart_share: float
    """The number of node steps with implications, divided by the number if every filter is
    evaluated by itself."""
    ordered_steps: float
    """The number of node steps if tests are in the order of measured pass rates, divided by the
    number if tests are in the order of the sizes of their sets."""
    ordered_tests: float
    """Like the previous field, but for the number of evaluated tests."""


class SweepPoint(msgspec.Struct, frozen=True):
    """The microseconds per event of the three engines, on a mix of narrow filters and clauses."""

    wide_percent: int
    clauses: int
    auto: float
    trees: float
    bdd: float
    ratio: float
    """The time of the automatic choice, divided by that of the faster engine."""


class DiagramReport(msgspec.Struct, frozen=True):
    machine: MachineInfo
    seed: int
    runs: list[DiagramRun]
    sweep: list[SweepPoint]
    coverings: list[Coverings]
    brute_force: SmallDomain
    figure_exact: bool
    """Whether the edges of figure 9 are found, and no others."""
    bars: list[Bar]
