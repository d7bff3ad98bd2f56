"""The results of `tidings bench bdd`, as data."""

from __future__ import annotations

import msgspec

from tidings.studies.engine.found_coverings import Coverings
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
    """Parts that were decided while their filters were still undecided."""


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
    groups: int
    edges: int
    bytes: int
    bytes_per_edge: float
    ways: list[DiagramWay]
    trees_micros: float
    """The matcher without diagrams, batches."""
    matcher_micros: float
    """The matcher with diagrams, batches."""
    speedup: float
    step_share: float
    """Node steps with implications, as a share of those without."""


class SweepPoint(msgspec.Struct, frozen=True):
    """The three engines on a mix of narrow filters and clauses: microseconds per event."""

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
