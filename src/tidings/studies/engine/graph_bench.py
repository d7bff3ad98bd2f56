"""Measures building a content graph in bulk: seconds of each step, memory, growth.

Parsing the filters is not measured; computing their forms is. Afterwards, the parents of some nodes
are compared with the parents that `covers` gives among all filters. If a graph is wrong, no figures
are reported.
"""

from __future__ import annotations

import gc
import random
import resource
import sys
import time
from collections.abc import Callable, Sequence

import msgspec

from tidings.filters import Filter, parse
from tidings.graph import ContentGraph, Node
from tidings.matching.covering import cover
from tidings.model import TidingsError, pause_gc
from tidings.studies.engine.growth import exponent
from tidings.studies.host.machine_info import MachineInfo, describe_machine
from tidings.studies.workloads.workloads import make_workload

STEPS = ("forms", "hulls", "doubts", "order", "join", "nodes")


class WrongGraph(TidingsError):
    """A graph has wrong edges, so its speed is meaningless."""


class GraphRun(msgspec.Struct, frozen=True):
    """The measurements for one number of filters."""

    workload: str
    filters: int
    seed: int
    threads: int
    nodes: int
    edges: int
    candidates: int
    """The number of pairs of hulls that the join compared."""
    pairs: int
    """The number of coverings that the join found."""
    seconds: float
    steps: dict[str, float]
    """The seconds of each step in STEPS."""
    processor: dict[str, float]
    """The processor time of each step, over all threads."""
    join_alone: float
    """The seconds of the step `join` with one thread."""
    filters_per_second: float
    parsed_bytes: int
    """Peak memory before the graph was built: mostly the parsed filters."""
    peak_bytes: int
    checked_nodes: int


class GraphGrowth(msgspec.Struct, frozen=True):
    """The exponent e of processor time ~ filters**e, for the whole build and for each step."""

    workload: str
    smallest: int
    largest: int
    seconds: float
    steps: dict[str, float]


class GraphReport(msgspec.Struct, frozen=True):
    """All runs, and how the time grows from the smallest to the largest number of filters."""

    machine: MachineInfo
    runs: list[GraphRun]
    growth: list[GraphGrowth]


def bench_graph(
    names: Sequence[str],
    sizes: Sequence[int],
    *,
    threads: int = 2,
    sample: int = 10,
    seed: int = 1,
    note: Callable[[str], None] = lambda _: None,
) -> GraphReport:
    """Measure each workload with each number of filters. `note` is called with each step."""
    where = describe_machine()
    warm_up()
    runs: list[GraphRun] = []
    growth: list[GraphGrowth] = []
    for name in names:
        mine = [
            measure(name, size, threads=threads, sample=sample, seed=seed, note=note)
            for size in sizes
        ]
        runs.extend(mine)
        if len(set(sizes)) > 1:
            growth.append(graph_growth(mine))
    return GraphReport(where, runs, growth)


def warm_up() -> None:
    """Compile all kernels."""
    ContentGraph.build([parse(text) for text in ("x > 1", "x > 2", "x = 3 OR y = 3", "a < b")])


def measure(
    name: str,
    size: int,
    *,
    threads: int,
    sample: int,
    seed: int,
    note: Callable[[str], None] = lambda _: None,
) -> GraphRun:
    """Build the graph of a workload, and check it."""
    note(f"{name}, {size:,} filters: parsing")
    filters = _parse_filters(name, size, seed)
    parsed_bytes = peak_bytes()
    note(f"{name}, {size:,} filters: building")
    clock = _Clock()
    graph = ContentGraph.build(filters, threads=threads, note=clock.note)
    clock.note("end")
    peak = peak_bytes()
    note(f"{name}, {size:,} filters: building once more with one thread, and checking")
    alone = _Clock()
    found = cover([node.filter.form for node in graph], threads=1, note=alone.note)
    alone.note("end")
    checked = check_graph(graph, sample, seed)
    seconds = sum(clock.steps.values())
    return GraphRun(
        workload=name,
        filters=size,
        seed=seed,
        threads=threads,
        nodes=len(graph),
        edges=sum(len(graph.parents(node)) for node in graph),
        candidates=found.candidates,
        pairs=found.pairs,
        seconds=seconds,
        steps={step: clock.steps.get(step, 0.0) for step in STEPS},
        join_alone=alone.steps["join"],
        processor={step: clock.processor.get(step, 0.0) for step in STEPS},
        filters_per_second=size / seconds,
        parsed_bytes=parsed_bytes,
        peak_bytes=peak,
        checked_nodes=checked,
    )


class _Clock:
    """Measures the seconds of each step, from the note that announces it to the next note."""

    def __init__(self) -> None:
        self.steps: dict[str, float] = {}
        self.processor: dict[str, float] = {}
        self._now: tuple[str, float, float] | None = None

    def note(self, step: str) -> None:
        wall, processor = time.perf_counter(), time.process_time()
        if self._now is not None:
            name, start, used = self._now
            self.steps[name] = self.steps.get(name, 0.0) + wall - start
            self.processor[name] = self.processor.get(name, 0.0) + processor - used
        self._now = (step, wall, processor)


def _parse_filters(name: str, size: int, seed: int) -> list[Filter]:
    """Parse filters without computing their forms."""
    gc.collect()
    with pause_gc():
        return [parse(text) for _, text in make_workload(name, size, 1, seed).texts()]


def peak_bytes() -> int:
    """The peak memory of this process."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def check_graph(graph: ContentGraph, sample: int, seed: int) -> int:
    """Raise WrongGraph if the parents of a sampled node are not those that `covers` gives.

    Half of the sampled nodes have parents. The check is exact for filters of one box, for which
    `covers` is complete.
    """
    nodes = list(graph)
    rng = random.Random(seed)
    covered = [node for node in nodes if graph.parents(node)]
    chosen = rng.sample(nodes, min(len(nodes), sample - sample // 2))
    chosen += rng.sample(covered, min(len(covered), sample // 2))
    for node in chosen:
        expected = _parents(nodes, node)
        if graph.parents(node) != expected:
            raise WrongGraph(f"{node!r} has the parents {graph.parents(node)}, expected {expected}")
    return len(chosen)


def _parents(nodes: Sequence[Node], node: Node) -> list[Node]:
    above = [one for one in nodes if one is not node and one.filter.covers(node.filter)]
    return [
        one
        for one in above
        if not any(one.filter.covers(other.filter) for other in above if other is not one)
    ]


def graph_growth(runs: Sequence[GraphRun]) -> GraphGrowth:
    """The growth of times over runs that differ in the number of filters."""
    sizes = [run.filters for run in runs]
    least = 1e-6  # a step without a measurable time counts as 1e-6 s: zero has no logarithm
    return GraphGrowth(
        workload=runs[0].workload,
        smallest=min(sizes),
        largest=max(sizes),
        seconds=exponent(sizes, [sum(run.processor.values()) for run in runs]),
        steps={
            step: exponent(sizes, [max(least, run.processor[step]) for run in runs])
            for step in STEPS
        },
    )
